package shell
import ("testing";"os";"deepseek/internal/permission";"context")
type yesman struct{t *testing.T}
func (y yesman) Approve(_ context.Context, r permission.Request) permission.Decision { y.t.Logf("ASK %+v", r); return permission.Decision{Allowed:true} }
func TestZZ(t *testing.T){
 r := newRig(t,nil)
 os.Mkdir(r.dir+"/home",0o700); os.Mkdir(r.dir+"/repo",0o755)
 run := func(dir string, a permission.Approver, cmds ...string){
  p,err := permission.New(permission.Config{Level:permission.WorkspaceWrite,Approve:"ask",Cwd:dir,Home:r.dir+"/home",Approver:a})
  if err!=nil {t.Fatal(err)}
  r.env.Policy=p; r.env.Cwd=dir
  for _,c := range cmds { g:=r.call(t.Context(),"bash",m{"command":c}); t.Logf("$ %s\n%s", c, g.Content) }
 }
 run(r.dir+"/repo", nil, "git init -q . && git config user.email a@b && git config user.name n && echo x > f && git add f && git commit -qm one && git log --oneline",
  "printf 'module x\\ngo 1.26\\n' > go.mod; printf 'package main\\nfunc main(){println(1)}\\n' > main.go; go build -o x . && ./x; go vet ./...",
  "npm --version; python3 -c 'print(1)'; man ls | head -1; git log | cat; vi </dev/null; echo done",
  "ssh -o ConnectTimeout=1 nobody@127.0.0.1; echo $?; script -qc 'tty' /dev/null; ls -la /proc/self/fd | head; ulimit -n; umask",
  "git clone -q https://127.0.0.1:1/x y; echo $?; sudo true; echo x > /etc/passwd2")
 r.env.Policy=open{}; r.bash("git worktree add -q ../wt")
 run(r.dir+"/wt", nil, "git status; echo y > g; git add g", "sh -c 'true; git add g'", "printf 'git add g\\n' > s.sh; sh s.sh")
 run(r.dir+"/wt", yesman{t}, "git add g && git commit -m two && git log --oneline", "git status --short")
}
