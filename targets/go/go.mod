module weir/targets/go

go 1.24
