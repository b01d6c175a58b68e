package view

import "deepseek/internal/session"

// settle says where a question stands, and shows its late answer.
func (b *Builder) settle(i *Item) {
	if !i.tracked {
		switch {
		case i.Answers != nil:
			i.State = string(session.QuestionSettled)
		case !i.ended:
			i.State = string(session.QuestionOpen)
		default:
			i.State = StateRemoved
		}
		return
	}
	q, ok := b.questions.Lookup(i.CallID)
	if !ok {
		i.State = StateRemoved
		if !i.ended {
			i.State = string(session.QuestionOpen) // its turn has not come
		}
		return
	}
	i.State = string(q.State)
	if q.State == session.QuestionSettled {
		i.Answers, i.Late, i.Queued = q.Answers, q.Late, false
		if i.Answers == nil {
			i.Answers = []session.Answer{}
		}
		return
	}
	i.Answers, i.Queued, i.Late = nil, false, false
	m, _, found := b.inbox.Reply(i.CallID)
	if !found {
		return
	}
	i.Queued, i.Late, i.Answers = true, true, []session.Answer{}
	if callID, _, answers, ok := session.ParseReply(session.TextOf(m.Content)); ok && callID == i.CallID {
		i.Answers = answers
	}
}

func (b *Builder) list() QuestionList {
	l := QuestionList{Active: []ActiveQuestion{}, Settled: []SettledQuestion{}}
	for _, q := range b.questions.Active() {
		_, queued, _ := b.inbox.Reply(q.CallID)
		l.Active = append(l.Active, ActiveQuestion{q.CallID, string(q.State), queued, q.Questions, q.AskedAt})
	}
	for _, q := range b.questions.Settled() {
		if q.Answers == nil {
			q.Answers = []session.Answer{}
		}
		l.Settled = append(l.Settled, SettledQuestion{q.CallID, q.Answers})
	}
	return l
}
