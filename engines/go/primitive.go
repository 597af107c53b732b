package main

import "time"

// primitives measures one operation of the library's crypto backend.
func primitives(s *scenario, out *report) error {
	hire := func() (worker, error) { return newOperator(s) }
	_, err := measure(s, out, hire, func() {})
	return err
}

// operator times cheap operations in batches, so that reading the clock does not count.
type operator struct {
	operate func() error
	batch   int
	ns      []int64
}

// newOperator determines the batch size.
func newOperator(s *scenario) (*operator, error) {
	operate, err := operations[s.operation](s)
	if err != nil {
		return nil, err
	}
	o := &operator{operate: operate, batch: 1}
	for {
		ns, err := o.run()
		if err != nil {
			return nil, err
		}
		if ns >= batchNS || s.count > 0 && 2*o.batch > s.count {
			o.forget()
			return o, nil
		}
		o.batch *= 2
	}
}

const batchNS = 50_000

func (o *operator) unit() (int, error) {
	ns, err := o.run()
	o.ns = append(o.ns, ns/int64(o.batch))
	return o.batch, err
}

func (o *operator) run() (int64, error) {
	began := time.Now()
	for range o.batch {
		if err := o.operate(); err != nil {
			return 0, err
		}
	}
	return int64(time.Since(began)), nil
}

func (o *operator) forget() {
	o.ns = make([]int64, 0, 1<<16)
}

func (o *operator) report(thread int, out *report) {
	out.samples(thread, "operation", o.ns)
}
