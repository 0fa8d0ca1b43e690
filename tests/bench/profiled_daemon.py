"""`python -m tests.bench.profiled_daemon VAULT STATE …`: the daemon for measuring, profiled from its first import on."""

from tests.bench import cpu_sampler

if __name__ == "__main__":
    cpu_sampler.RUNNING.start()
    from tests.bench.daemon import main

    main()
