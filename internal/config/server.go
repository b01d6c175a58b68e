package config

import "errors"

// Check tells what is wrong with a server that does not come from the file,
// whose reader has checked its own.
func (s Server) Check() error {
	switch {
	case !serverName(s.Name):
		return errors.New("a server's name is made of 1 to 32 letters, digits, - and single _")
	case (s.Command == "") == (s.URL == ""):
		return errors.New("it wants either a command or an address")
	case s.URL != "":
		return serverAddress(s.URL)
	}
	return nil
}
