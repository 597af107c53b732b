module weir/h2spec

go 1.23

require (
	github.com/fatih/color v1.18.0
	github.com/spf13/cobra v1.8.1
	github.com/summerwind/h2spec v2.2.1+incompatible
	golang.org/x/net v0.35.0
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mattn/go-colorable v0.1.13 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	golang.org/x/sys v0.30.0 // indirect
	golang.org/x/text v0.22.0 // indirect
)
