# frozen_string_literal: true

# test: long

require_relative "cluster_case"
require "open3"

# What happens before the first request.
class ClusterBootTest < Minitest::Test
  include ClusterCase

  def boot(*arguments)
    command = [*ServedProcess::HEDDLE, "serve", "-w", "2", "-p", "0", "-b", "127.0.0.1", *arguments]
    Open3.capture2e(*command, chdir: @folder, stdin_data: "")
  end

  def test_the_boot_line_names_addresses_and_number_of_workers
    serve
    wait_for("Ctrl-C stops it")

    assert_match(/^Heddle .* serves config\.ru on #{served.uri.to_s.chomp("/")}$/, served.output)
    assert_match(/^Mode \w+: 2 workers, each with /, served.output)
  end

  def test_threads_that_the_application_starts_while_it_is_loaded_are_named
    write("config.ru", <<~RUBY)
      Thread.new { sleep }.name = "metrics"
      Thread.new { sleep }
      Thread.new { sleep }.thread_variable_set(:fork_safe, true)
      Thread.new { nil }.join
      require "timeout"
      Timeout.timeout(5) { nil }
      run ->(_env) { [200, {}, []] }
    RUBY
    serve
    wait_for("Ctrl-C stops it")
    lines = served.output.lines.grep(/while it was loaded/)

    assert_equal 1, lines.size, served.output
    assert_match(/workers don't have 2 threads .*: metrics \(\S+config\.ru:1\), \S+config\.ru:2\. Start/, lines[0])
  end

  def test_an_application_that_cannot_be_loaded_is_reported_once_and_ends_the_server
    { "run ->(env) {" => /\Aheddle: config\.ru can't be loaded because of a syntax error:/,
      "raise 'no key'" => /\Aheddle: config\.ru can't be loaded:\n  RuntimeError: no key\n/,
      "exit 3" => /\Aheddle: the application ended the process while it was loaded, with status 3 \(config\.ru:1\)\n\z/,
      "abort 'no database'" => /^heddle: .* ended the process .* with status 1 \(config\.ru:1\): no database$/,
      "Process.kill 'KILL', $$" => /\Aheddle: the process that loads the application has ended: SIGKILL/ }
      .each do |code, message|
        write("config.ru", code)
        output, status = boot

        assert_equal 1, status.exitstatus
        assert_match message, output
        assert_equal 1, output.scan("heddle:").size, output
        refute_match(%r{lib/heddle/}, output)
      end
    File.unlink(path("config.ru"))
    output, status = boot

    assert_equal 1, status.exitstatus
    assert_match(/\Aheddle: there is no file config\.ru/, output)
  end

  def test_a_worker_that_cannot_boot_ends_it_when_none_ever_could
    write("config/heddle.rb", "worker_boot { |number| raise \"no database for \#{number}\" }\n")
    output, status = boot

    assert_equal 1, status.exitstatus
    assert_match(/worker \d failed: RuntimeError: no database for \d$/, output)
    assert_match(/^heddle: no worker can serve: worker \d \(pid \d+\) has ended: RuntimeError: no database for \d \(/,
                 output)
  end

  # As under `ulimit -u` or a container's pids.max.
  def test_the_error_of_a_worker_is_reported_in_any_encoding
    write("config/heddle.rb", "worker_boot { begin; raise \"\\u00E9\"; rescue; raise \"caf\\xE9\".b; end }\n")
    output, = boot

    assert_match(/worker 0 failed: RuntimeError: caf\\xE9, caused by RuntimeError: \u00E9$/, output.scrub)
  end

  def test_a_failed_thread_creation_is_reported_with_the_limit_to_raise_and_no_backtrace
    refuse = "def Thread.new(*) = raise(ThreadError, \"can't create Thread: Resource temporarily unavailable\")\n"
    [["worker_boot { #{refuse.chomp} }\n", [], /worker \d failed: can't create Thread: the system allows .* pids\.max/],
     [refuse, %w[-w 0], /\Aheddle: can't create Thread: the system allows .* pids\.max/]].each do |hook, flags, message|
      write("config/heddle.rb", hook)
      output, status = boot(*flags)

      assert_equal 1, status.exitstatus, output
      assert_match message, output
      refute_match(%r{lib/heddle/}, output)
    end
  end

  def test_a_failed_fork_is_reported_with_the_limit_to_raise
    write("config/heddle.rb", <<~RUBY)
      before_worker_fork do
        def Process.fork = raise(Errno::EAGAIN, "fork(2)")
        Kernel.prepend(Module.new { def fork = raise(Errno::EAGAIN, "fork(2)") })
      end
    RUBY
    output, status = boot

    assert_equal 1, status.exitstatus, output
    assert_match(/could not be forked: fork\(2\): the system allows .* pids\.max/, output)
  end

  def test_a_port_in_use_is_reported_before_the_application_is_loaded
    taken = TCPServer.new("127.0.0.1", 0)
    write("config.ru", "puts 'loaded'\n#{APP}")
    output, status = boot("-p", taken.local_address.ip_port.to_s)

    assert_equal 1, status.exitstatus
    assert_match(/the port is taken/, output)
    refute_includes output, "loaded"
  ensure
    taken.close
  end

  def test_the_application_is_loaded_once_and_not_by_the_master
    write("config.ru", "puts \"loaded by \#{$$}\"\n#{APP}")
    serve
    loaders = served.output.scan(/loaded by (\d+)/).flatten.map(&:to_i)

    assert_equal 1, loaders.size
    refute_includes [served.pid, *workers], loaders.first
  end

  def test_hooks_run_in_their_processes_and_in_their_order
    write("config/heddle.rb", <<~'RUBY')
      note = ->(what) { File.write("notes", "#{what} #{$$}\n", mode: "a") }
      before_mold { note.("before_mold") }
      after_mold { note.("after_mold") }
      before_worker_fork { |number| note.("before_worker_fork #{number}") }
      worker_boot { |number| note.("worker_boot #{number}") }
      worker_stop { |number| note.("worker_stop #{number}") }
    RUBY
    serve(workers: 1)
    pid = worker
    served.stop
    notes = File.readlines(path("notes"), chomp: true)
    mold = notes.first[/\d+/].to_i

    assert_equal ["before_mold #{mold}", "after_mold #{mold}", "before_worker_fork 0 #{mold}", "worker_boot 0 #{pid}",
                  "worker_stop 0 #{pid}"], notes
    refute_equal served.pid, mold
    @served = nil
  end

  def test_a_process_alone_runs_the_hooks_of_a_worker
    write("config/heddle.rb", <<~'RUBY')
      worker_boot { |number| File.write("notes", "boot #{number} #{$$}\n", mode: "a") }
      worker_stop { |number| File.write("notes", "stop #{number} #{$$}\n", mode: "a") }
    RUBY
    serve(workers: 0)
    pid = served.pid
    served.stop

    assert_equal ["boot 0 #{pid}", "stop 0 #{pid}"], File.readlines(path("notes"), chomp: true)
    write("config/heddle.rb", "worker_boot { raise 'no database' }\n")
    output, status = boot("-w", "0")

    assert_equal 1, status.exitstatus
    assert_match(/^heddle: the hook worker_boot failed: RuntimeError: no database/, output)
    @served = nil
  end

  # NoMemoryError is not a StandardError.
  def test_any_exception_of_a_mold_hook_is_reported_without_a_backtrace
    raising = "raise NoMemoryError, \"no \\xFF\""
    { "before_mold" => /\Aheddle: the hook before_mold failed: NoMemoryError: no \\xFF \(/,
      "after_mold" => /\Aheddle: the hook after_mold failed: NoMemoryError: no \\xFF \(/,
      "before_worker_fork" => /^heddle: no worker can serve: .* could not be forked: NoMemoryError: no \\xFF$/ }
      .each do |hook, message|
        write("config/heddle.rb", "#{hook} { #{raising} }\n")
        output, status = boot

        assert_equal 1, status.exitstatus
        assert_match message, output
        refute_match(/the workers\) failed|from /, output)
      end
  end

  def test_an_error_of_the_mold_that_no_hook_has_raised_is_not_said_to_be_one_of_a_hook
    write("config.ru", "Heddle::Server::JIT.define_singleton_method(:enable) { raise 'no room' }\n#{APP}")
    output, status = boot

    assert_equal 1, status.exitstatus
    assert_match(/the mold .* failed: .*no room/, output)
    refute_match(/hook/, output)
  end

  def test_workers_share_the_files_of_the_server_with_the_mold
    write("config/heddle.rb", "after_mold { $loaded = $LOADED_FEATURES.dup }\n")
    write("config.ru", <<~'RUBY')
      run ->(_env) { [200, {}, [($LOADED_FEATURES - $loaded).grep(%r{/heddle/}).join("\n")]] }
    RUBY
    serve

    assert_equal "", served.get("/").body, "each worker has loaded these"
  end

  # What the master has loaded, the workers have, too.
  def test_processes_of_an_application_of_one_line_have_not_loaded_the_http_client
    write("config.ru", <<~'RUBY')
      run ->(_env) { [200, {}, [$LOADED_FEATURES.grep(%r{/(time|zlib|http/client)\.rb\z}).join("\n")]] }
    RUBY
    serve

    assert_equal "", served.get("/").body
  end

  def test_applications_use_the_standard_libraries_that_puma_loads_without_requiring_them
    write("config.ru", "run ->(_env) { [200, {}, [[URI, Tempfile, Delegator, FileUtils, Open3, Etc].join(' ')]] }")
    serve

    assert_equal "URI Tempfile Delegator FileUtils Open3 Etc", served.get("/").body
  end

  def test_a_single_worker_is_forked_in_production_only
    { "development" => true, "production" => false }.each do |environment, same|
      serve(workers: 1, environment: { "RACK_ENV" => environment })

      assert_equal same, worker == served.pid, environment
      served.stop
    end
    @served = nil
  end

  if GC.respond_to?(:config)
    def test_full_garbage_collections_that_are_off_are_reported_by_one_worker_at_the_start_and_after_a_reload
      write("config/heddle.rb", "worker_boot { GC.config(rgengc_allow_full_mark: false) }\n")
      serve
      wait_for("full garbage collections are off")
      signal("HUP")
      wait_for("reloaded: 2 workers serve the new code")
      served.stop

      assert_equal 2, said("full garbage collections are off")
    end
  end
end
