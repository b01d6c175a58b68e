package prompt

import "golang.org/x/sys/unix"

// rawModes are modes in which every key arrives as it is typed, as cfmakeraw makes them.
func rawModes(m unix.Termios) unix.Termios {
	m.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	m.Oflag &^= unix.OPOST
	m.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	m.Cflag &^= unix.CSIZE | unix.PARENB
	m.Cflag |= unix.CS8
	m.Cc[unix.VMIN], m.Cc[unix.VTIME] = 1, 0
	return m
}

// sameModes compares modes. PENDIN is no mode: the system sets it by itself.
func sameModes(a, b unix.Termios) bool {
	a.Lflag &^= unix.PENDIN
	b.Lflag &^= unix.PENDIN
	return a == b
}
