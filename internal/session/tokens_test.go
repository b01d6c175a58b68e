package session

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// The counts are those of two widely used tokenizers, the higher one each. The
// estimate may be above them, by less than a factor that the row names, and
// hardly below.
func TestTokensErrUpwards(t *testing.T) {
	var encoded strings.Builder
	for i := range 60 {
		h := sha256.Sum256([]byte(fmt.Sprint(i)))
		encoded.WriteString(base64.StdEncoding.EncodeToString(h[:]))
	}
	for name, c := range map[string]struct {
		text   string
		counts int
		factor float64
	}{
		"nothing":      {"", 0, 1},
		"Chinese":      {"压缩在上下文窗口的八成处开始,先删去过长的工具结果,然后请求一次摘要。被替换的范围由消息注明,调用与其结果永远不会被拆开。", 70, 1.2},
		"Japanese":     {"セッションは追記専用のファイルです。エージェントが知っていることはすべてそこから再構築されます。", 47, 1.3},
		"Korean":       {"세션은 추가 전용 파일입니다. 에이전트가 아는 모든 것은 여기서 다시 만들어집니다.", 32, 1.5},
		"Russian":      {"Сессия — это один файл, в который можно только дописывать. Всё, что знает агент, восстанавливается из него.", 42, 1.7},
		"JSON":         {`{"seq":12,"type":"tool/result","time":1796058723001,"data":{"turn":1,"step":2,"message":{"id":"0199","role":"tool","toolCallId":"call_1","content":"ok","isError":false}}}`, 57, 1.7},
		"short keys":   {`{"a":1,"b":[true,false,null],"c":{"d":"e"}}`, 17, 1.7},
		"numbers":      {"3.14159 2.71828 1.41421 1796058723001 42 7 1000000 0x7fff 192.168.10.254", 41, 1.2},
		"base64":       {encoded.String(), 1904, 1.2},
		"ids":          {"0199a7c2-5b1e-7c3d-8f4a-1b2c3d4e5f60 0199a7c2-5b1e-7c3d-8f4a-aaaaaaaaaaaa", 58, 1.3},
		"minified":     {`function(e,t,n){var r=n(12),o=n.n(r);t.a=function(e){return o()(e)?e:[e]}}`, 31, 1.5},
		"indented":     {strings.Repeat("        x := 1\n", 20), 120, 1.2},
		"a diff":       {"--- a/x.go\n+++ b/x.go\n@@ -1,3 +1,3 @@\n-func a() {}\n+func b() {}\n", 31, 1.5},
		"capitals":     {"THE SESSION IS BUSY AND CANNOT BE OPENED RIGHT NOW", 13, 1.5},
		"English":      {"Work until the task is done, then answer in a few plain sentences: what you did, what you checked, what is left.", 25, 1.5},
		"emoji":        {"🎉🚀✅👍🏽🇩🇪", 20, 1.7},
		"broken UTF-8": {"\xff\xfe\xff", 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := Tokens(c.text)
			if low, high := float64(c.counts)*0.9, float64(c.counts)*c.factor; float64(got) < low || float64(got) > high {
				t.Errorf("estimated at %d, want %.0f to %.0f", got, low, high)
			}
		})
	}
}

func TestALongRulerIsCheap(t *testing.T) {
	if got := Tokens(strings.Repeat("-", 1000)); got > 300 {
		t.Errorf("1000 dashes are estimated at %d tokens", got)
	}
}

func FuzzTokens(f *testing.F) {
	f.Add("a", "b")
	f.Add("压缩", `{"a":1}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		one, two, both := Tokens(a), Tokens(b), Tokens(a+b)
		if one < 0 || both > one+two+2 || (a != "" && one == 0) {
			t.Errorf("%q: %d, %q: %d, together %d", a, one, b, two, both)
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	text := strings.Repeat("if err != nil { return fmt.Errorf(\"open %s: %w\", path, err) }\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Tokens(text)
	}
}
