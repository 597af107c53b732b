module weir/engines/go

go 1.26
