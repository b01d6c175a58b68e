package cli

import "golang.org/x/sys/unix"

// holdsNoFolders tells whether a file system shows the kernel's own affairs, in
// which nothing can be made though the rights say so.
func holdsNoFolders(s unix.Statfs_t) bool {
	return s.Type == unix.PROC_SUPER_MAGIC || s.Type == unix.SYSFS_MAGIC
}
