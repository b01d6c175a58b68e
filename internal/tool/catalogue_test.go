package tool_test

import (
	"testing"
	"time"

	"deepseek/internal/tool"
	"deepseek/internal/tool/files"
	"deepseek/internal/tool/search"
	"deepseek/internal/tool/todo"
)

func offered() []tool.Tool {
	var all []tool.Tool
	all = append(all, files.New(files.Env{})...)
	all = append(all, search.New(search.Env{})...)
	return append(all, todo.New(nil))
}

// What a model is told on every request must stay small, and well-formed.
func TestTheCatalogueIsSoundAndSmall(t *testing.T) {
	r, err := tool.NewRegistry(offered()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Compile(); err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, s := range r.Specs() {
		n := len(s.Description) + len(s.Parameters)
		t.Logf("%-12s %d", s.Name, n)
		size += n
	}
	if t.Logf("all %d", size); size > 3500 {
		t.Errorf("%d bytes", size)
	}
}

func BenchmarkSpecs(b *testing.B) {
	for b.Loop() {
		r, err := tool.NewRegistry(offered()...)
		if err != nil || len(r.Specs()) == 0 {
			b.Fatal(err)
		}
	}
	if per := b.Elapsed() / time.Duration(b.N); per > 3*time.Millisecond {
		b.Logf("slow: %v", per)
	}
}
