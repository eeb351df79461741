// tcpdump starts Debian's, which is built to go on as a user that its package's installation makes. In
// an image of unpacked packages there is no such user: it stays who it is, unless -Z says otherwise.
package main

import (
	"fmt"
	"os"
	"syscall"
)

const program = "/usr/bin/tcpdump"

func main() {
	err := syscall.Exec(program, append([]string{"tcpdump", "-Z", "root"}, os.Args[1:]...), os.Environ())
	fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
	os.Exit(127)
}
