package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// lateAnswer measures the way of an answer from a second shell to the model,
// through an owner that is idle.
func (b *bench) lateAnswer(ctx context.Context) error {
	ask := object{"questions": []object{{"id": "q", "question": "Which port?", "options": []object{{"label": "8080"}, {"label": "9090"}}}}, "timeout": 1}
	s, err := serve(func(n int) []string {
		if n == 0 {
			return call("call_q", "ask_user_question", ask)
		}
		return text("Gone on.")
	})
	if err != nil {
		return err
	}
	defer s.close()
	var ways, whole []time.Duration
	for i := range max(b.runs/4, 1) {
		way, all, err := b.oneLate(ctx, s, b.home(fmt.Sprint("late", i)))
		if err != nil {
			return err
		}
		s.take()
		ways, whole = append(ways, way), append(whole, all)
	}
	way, all := spreadOf(ways, itself), spreadOf(whole, itself)
	syncs, err := b.fsync(512)
	if err != nil {
		return err
	}
	b.add(row{
		work: "late answer to an idle `rpc` owner: exit of `answer` to the next request", measured: ms(way.median), least: ms(way.least),
		floor: "one fsync " + ms(syncs.median), bar: "50 ms", ok: judge(way.median < 50*time.Millisecond),
	})
	b.add(row{work: "the same from the start of `answer`", measured: ms(all.median), least: ms(all.least), floor: "one fsync " + ms(syncs.median)})
	return nil
}

func (b *bench) oneLate(ctx context.Context, s *server, home string) (way, whole time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	owner, err := b.rpc(ctx, home, s.url)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, owner.end()) }()
	id, err := owner.ask()
	if err != nil {
		return 0, 0, err
	}
	one, err := b.measure(ctx, nil, b.binary, "answer", id, "call_q", "--select", "q=9090", "--home", home)
	if err != nil {
		return 0, 0, err
	}
	next, err := s.wait(ctx, 2)
	if err != nil {
		return 0, 0, err
	}
	return next.arrived.Sub(time.Unix(0, one.End)), next.arrived.Sub(time.Unix(0, one.Start)), nil
}

// owner is a `deepseek rpc` that serves one session. One goroutine uses it.
type owner struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (b *bench) rpc(ctx context.Context, home, url string) (*owner, error) {
	cmd := exec.CommandContext(ctx, b.binary, "rpc", "--home", home, "--base-url", url)
	cmd.Dir, cmd.Env = b.work, environment()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &owner{cmd: cmd, in: in, out: bufio.NewReader(out)}, cmd.Start()
}

// end closes the owner's input, reads what is left and waits.
func (o *owner) end() error {
	err := o.in.Close()
	_, copied := io.Copy(io.Discard, o.out)
	return errors.Join(err, copied, o.cmd.Wait())
}

type message struct {
	ID     int
	Params struct{ Status string }
	Result struct{ SessionID string }
	Error  *struct{ Message string }
}

// ask begins a session whose first step asks a question, and returns when the
// owner is idle and the question left to a late answer.
func (o *owner) ask() (id string, err error) {
	const prompt = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"cwd":%q,"mode":"timed"}}
{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"contentBlocks":[{"type":"text","text":"serve it"}]}}
`
	if _, err := fmt.Fprintf(o.in, prompt, o.cmd.Dir); err != nil {
		return "", err
	}
	worked := false
	for {
		line, err := o.out.ReadBytes('\n')
		if err != nil {
			return "", fmt.Errorf("the owner ended: %w", err)
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return "", err
		}
		switch {
		case m.Error != nil:
			return "", errors.New(m.Error.Message)
		case m.ID == 2:
			id = m.Result.SessionID
		case m.Params.Status == "running":
			worked = true
		case m.Params.Status == "idle" && worked && id != "":
			return id, nil
		}
	}
}
