// Package config knows the settings: which there are, what values they take,
// and where the value of a run comes from. Precedence, highest first:
//
//	flag > environment (DEEPSEEK_…) > project file > user file > default
//
// The user file is $DEEPSEEK_HOME/config.yaml or what --config names; an error
// in it, in a flag or in a variable ends the program before anything starts.
// The project file (.deepseek/config.yaml at the workspace's root) comes from
// whoever wrote the repository and is trusted with a few harmless keys only:
// whatever else it holds is left out with a warning and the run goes on.
//
// The files are read as YAML nodes, because each value keeps the line it stands
// on and names of MCP servers and their variables keep their case. viper, which
// knows neither, settles the precedence of values that are read already.
package config
