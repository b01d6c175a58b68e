package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"deepseek/internal/logstore"
	"deepseek/internal/redact"
	"deepseek/internal/session"
	"deepseek/internal/view"
)

func newSessionsExport(a *App, run sessionsRun) *cobra.Command {
	var o sessionsOptions
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Copy a session and all it refers to into a folder",
		Long: "Copy a session into a new folder named by its id: the log, its spilled outputs, and the same of its sub-agents.\n" +
			"Every command takes the copied log by its path, here or on another machine.",
		Example: `  deepseek sessions export last
  deepseek sessions export last -o /tmp`,
		Args:              arguments("SESSION"),
		ValidArgsFunction: onlyFirst(completeSessions(a)),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.sessions = args
			return run(cmd.Context(), a, o)
		},
	}
	cmd.Flags().StringVarP(&o.out, "dir", "o", ".", "`directory` in which the folder is made")
	// The error is for a flag that is not there.
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

func runSessionsExport(ctx context.Context, a *App, o sessionsOptions) error {
	ctx, signals := Watch(ctx, a.Exit)
	defer signals.Stop()
	home, err := a.Home()
	if err != nil {
		return err
	}
	store, paths, err := a.locate(o.sessions)
	if err != nil {
		return err
	}
	cwd, err := a.Cwd()
	if err != nil {
		return err
	}
	dir := o.out
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(cwd, dir)
	}
	if what := a.precious(home, linkTarget(dir)); what != "" {
		return usagef("%s is %s, where a copy would be taken for a session\nname another folder with -o DIR", dir, what)
	}
	members, err := family(ctx, store, home, paths[0])
	if err != nil {
		return err
	}
	e := exporter{key: a.key(), warn: func(text string) { a.Warnf("deepseek: %s\n", view.OneLine(text)) }}
	dest, err := e.export(ctx, members, dir)
	if err != nil {
		return err
	}
	a.Printf("%s\n", a.visible(dest))
	return nil
}

// exporter copies sessions. Its folder gets its name when everything is in it
// and on the disk.
type exporter struct {
	key  redact.Key        // taken out of what is copied
	warn func(text string) // about what was not copied, or not as it should be
}

// export copies the files of a family into a new folder of dir, which is named
// by the first of them, and returns its path.
func (e exporter) export(ctx context.Context, members []string, dir string) (dest string, err error) {
	dest = filepath.Join(dir, fileID(members[0]))
	switch _, err := os.Lstat(dest); {
	case err == nil:
		return "", usagef("%s exists already\nremove it, or name another folder with -o DIR", dest)
	case !errors.Is(err, fs.ErrNotExist):
		return "", usagef("cannot export to %s: %s\nname another folder with -o DIR", dest, reason(err))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", usagef("cannot export to %s: %s\nname another folder with -o DIR", dir, reason(err))
	}
	temp, err := os.MkdirTemp(dir, "."+fileID(members[0])+"-*.new")
	if err != nil {
		return "", fmt.Errorf("cannot export to %s: %w", dir, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	for i, m := range members {
		if err := e.copyMember(ctx, m, temp, i == 0); err != nil {
			return "", err
		}
	}
	if err := syncDir(temp); err != nil {
		return "", err
	}
	// Where somebody was quicker this fails, unless theirs is an empty folder.
	if err := os.Rename(temp, dest); err != nil {
		return "", fmt.Errorf("cannot export to %s: %w", dest, reason(err))
	}
	return dest, syncDir(dir)
}

// copyMember copies one session. The log comes first: what it refers to was
// there before it.
func (e exporter) copyMember(ctx context.Context, path, into string, first bool) error {
	size := int64(-1)
	end, err := logstore.Read(ctx, path, func(logstore.Line) error { return nil })
	switch {
	case err == nil:
		size = end.Size // without a cut last line
	case !first && errors.Is(err, logstore.ErrNotFound):
		return nil // removed since
	case first || !errors.Is(err, session.ErrDamaged) && !errors.Is(err, session.ErrTooNew):
		return err
	default:
		e.warn("the session of a sub-agent is exported as it is: " + err.Error())
	}
	to := filepath.Join(into, filepath.Base(path))
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := e.copyFile(from, to, size); err != nil {
		return err
	}
	return e.copySpill(ctx, logstore.SpillDir(path), logstore.SpillDir(to))
}

// copySpill copies the files of a spill folder, if there is one. No link is followed.
func (e exporter) copySpill(ctx context.Context, from, to string) (err error) {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		e.warn("not exported, since it is no folder: " + from)
		return nil
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !entry.Type().IsRegular() {
			e.warn("not exported, since it is no plain file: " + filepath.Join(from, entry.Name()))
			continue
		}
		f, err := root.OpenFile(entry.Name(), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return err
		}
		if err := e.copyFile(f, filepath.Join(to, entry.Name()), -1); err != nil {
			return err
		}
	}
	return syncDir(to)
}

// copyFile copies size bytes, all for -1, into a new file, but for the key, and
// closes both.
func (e exporter) copyFile(from *os.File, to string, size int64) (err error) {
	defer func() { err = errors.Join(err, from.Close()) }()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Chmod(0o600); err != nil { // the umask may have taken from it
		return err
	}
	w := e.key.Writer(f)
	if size < 0 {
		_, err = io.Copy(w, from)
	} else {
		_, err = io.CopyN(w, from, size)
	}
	if err == nil {
		err = w.Flush()
	}
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s was cut while it was copied\ntry again", from.Name())
	case err != nil:
		return fmt.Errorf("copy %s: %w", from.Name(), err)
	}
	return f.Sync()
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
