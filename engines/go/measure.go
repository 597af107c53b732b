package main

import (
	"runtime"
	"syscall"
	"time"
)

// worker is the work of one thread.
type worker interface {
	// unit does one, or several cheap ones; returns how many.
	unit() (int, error)
	// forget drops the measurements so far.
	forget()
	// report reports the measurements.
	report(thread int, out *report)
}

// measure lets each thread warm up, start with the others, and measure until its window or count is over. Shared
// results are dropped by `forget` before they start.
func measure(s *scenario, out *report, hire func() (worker, error), forget func()) ([]worker, error) {
	threads := make([]*thread, s.threads)
	warm, start, ended := make(chan error), make(chan bool), make(chan error)
	for i := range threads {
		threads[i] = &thread{}
		go func() {
			// The goroutine's CPU time is the thread's, and its coroutines stay on the thread.
			runtime.LockOSThread()
			warm <- threads[i].warmUp(s, hire)
			<-start
			ended <- threads[i].measure(s)
		}()
	}
	if err := all(warm, s.threads); err != nil {
		return nil, err
	}
	forget()
	close(start)
	if err := all(ended, s.threads); err != nil {
		return nil, err
	}
	var workers []worker
	for i, t := range threads {
		t.worker.report(i, out)
		t.report(i, out)
		workers = append(workers, t.worker)
	}
	return workers, nil
}

// all waits for each thread, or for the first that fails.
func all(from chan error, threads int) error {
	for range threads {
		if err := <-from; err != nil {
			return err
		}
	}
	return nil
}

type thread struct {
	worker   worker
	units    int
	wall     time.Duration
	cpuNS    int64
	switches int64
}

func (t *thread) warmUp(s *scenario, hire func() (worker, error)) error {
	var err error
	if t.worker, err = hire(); err != nil {
		return err
	}
	for done := 0; done < s.warmup; {
		units, err := t.worker.unit()
		if err != nil {
			return err
		}
		done += units
	}
	t.worker.forget()
	return nil
}

func (t *thread) measure(s *scenario) error {
	window := time.Duration(s.windowMS) * time.Millisecond
	cpuNS, switches := used()
	began := time.Now()
	for t.units == 0 || t.units < s.count || t.wall < window {
		units, err := t.worker.unit()
		if err != nil {
			return err
		}
		t.units += units
		t.wall = time.Since(began)
	}
	t.cpuNS, t.switches = used()
	t.cpuNS -= cpuNS
	t.switches -= switches
	return nil
}

func (t *thread) report(number int, out *report) {
	out.line(map[string]any{
		"type": "thread", "thread": number, "units": t.units, "wall_ns": t.wall, "cpu_ns": t.cpuNS,
		"voluntary_switches": t.switches,
	})
}

// used is this thread's CPU time and voluntary context switches.
func used() (ns, switches int64) {
	const thisThread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thisThread, &usage); err != nil {
		panic(err) // The kernel knows it since 2.6.26.
	}
	return usage.Utime.Nano() + usage.Stime.Nano(), usage.Nvcsw
}
