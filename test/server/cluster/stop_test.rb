# frozen_string_literal: true

require "support/native_library"
require_relative "cluster_case"

# Requests that have arrived are answered before the server stops.
class ClusterStopTest < Minitest::Test
  include ClusterCase

  # A terminal sends QUIT (Ctrl-\) to all processes, and only the master may follow it.
  def test_a_stop_by_quit_under_load_answers_all_that_was_asked
    serve
    load = self.load(fresh: 0, kept: 8)
    load.wait_for(200)
    [*workers, served.pid].each { |pid| Process.kill("QUIT", pid.to_i) }
    status = served.wait
    load.stop

    assert_predicate status, :success?, served.output
    assert_empty(load.failures.reject { |failure| too_late?(failure) })
    @served = nil
  end

  def test_clients_in_the_accept_queue_are_answered_at_a_stop
    serve(workers: 1)
    blocked = ask("/block")
    wait_until { File.exist?(path("held")) }
    queued = Array.new(20) { ask("/") }
    signal("TERM")

    [blocked, *queued].each { |socket| assert_match(/code 1\z/, socket.read) }
    assert_predicate served.wait, :success?
    @served = nil
  end

  def test_running_requests_finish_and_a_second_ctrl_c_ends_them
    serve("--stop-timeout", "600")
    held = ask("/hold")
    wait_until { File.exist?(path("held")) }
    signal("INT")
    wait_for("Ctrl-C again stops at once")

    assert alive?(served.pid)
    status = served.stop

    assert_equal 1, status.exitstatus, served.output
    assert_operator held.read, :start_with?, "HTTP/1.1 503 "
    assert_match(/stopping (after \S+ s )?with 1 request unanswered/, served.output)
    @served = nil
  end

  def test_ctrl_c_again_and_again_does_not_put_the_end_off
    write("config.ru", APP.sub("sleep 1", "sleep"))
    serve
    held = ask("/block")
    wait_until { File.exist?(path("held")) }
    wait_until do
      signal("INT")
      false
    rescue Errno::ESRCH
      true
    end

    assert_includes served.output, "stopping at once"
    @served = nil
  ensure
    held&.close
  end

  # Stops a worker at its first step, when it has set no handler yet.
  EARLY_TERM = <<~RUBY
    Process.singleton_class.prepend(Module.new do
      def setproctitle(title)
        super
        return unless title.include?("worker") && File.exist?("hang")

        File.write("held", "")
        sleep 0.01 until File.exist?("go")
        Process.kill("TERM", $$)
      end
    end)
  RUBY

  # systemd, and a shell that ends a job, send TERM to all processes.
  def test_a_worker_that_gets_term_before_it_has_a_handler_ends_well_at_a_stop
    write("config.ru", EARLY_TERM + APP)
    serve(workers: 1)
    write("hang", "")
    signal("TTIN")
    wait_until { File.exist?(path("held")) }
    signal("TERM")
    wait_for("stopping (SIGTERM)")
    write("go", "")

    assert_predicate served.wait, :success?, served.output
    refute_includes served.output, "failed"
    @served = nil
  end

  def test_stop_does_not_announce_another_start_of_a_worker_that_is_not_forked_yet
    write("config/heddle.rb", "before_worker_fork { sleep if File.exist?('hang') }")
    serve
    write("hang", "")
    signal("KILL", worker)
    wait_for("starting another now")
    status = served.stop

    assert_predicate status, :success?, served.output
    assert_equal 1, said("starting another"), served.output
    @served = nil
  end

  def test_all_processes_end
    serve
    pids = workers
    pids |= children_of(served.pid)
    served.stop

    assert_operator pids.size, :>=, 3, "the mold too"
    wait_until { pids.none? { |pid| alive?(pid) } }
    refute_includes served.output, "lost the connection to the master"
    @served = nil
  end

  def test_workers_end_by_themselves_when_their_master_is_killed
    serve
    pids = workers | children_of(served.pid)
    signal("KILL")
    wait_until { pids.none? { |pid| alive?(pid) } }
    2.times { |worker| wait_for("worker #{worker} has lost the connection to the master (the master has ended)") }
  end

  # A worker, and the reserve worker that has started because the first one is stuck.
  def test_workers_that_are_stuck_in_native_code_end_when_their_master_is_killed
    callbacks = NativeLibrary.new(File.expand_path("../../preemption/support/callbacks.c", __dir__)).path
    write("config.ru", <<~RUBY)
      require #{callbacks.inspect}
      run do |env|
        next [200, { "x-worker" => $$.to_s }, []] if env["PATH_INFO"] == "/"

        Fiber.blocking do # answers no other request between the two
          File.write($$.to_s, "")
          CallingBack.hang
        end
      end
    RUBY
    serve("--stop-timeout", "0", workers: 1, reserves: 1)
    stuck = %w[first second].map do |name|
      pid = worker
      ask("/#{name}")
      wait_until { File.exist?(path(pid.to_s)) }
      pid
    end
    signal("KILL")
    wait_until { stuck.none? { |pid| alive?(pid) } }

    assert_equal 2, stuck.uniq.size
  end

  # Otherwise it has the listening sockets until the application is loaded, and no other server can start.
  def test_a_mold_that_loads_the_application_ends_when_its_master_is_killed
    serve
    write("config.ru", "$stdout.puts \"mold \#{$$} loads\"\n$stdout.flush\nsleep #{PATIENCE + 5}\n#{APP}")
    signal("HUP")
    wait_for(/mold \d+ loads$/)
    mold = served.output[/mold (\d+) loads$/, 1].to_i
    signal("KILL")
    wait_until { !alive?(mold) }
  end

  def test_a_pidfile_names_the_master_as_long_as_it_runs
    serve("--pidfile", "tmp/server.pid")

    assert_equal served.pid, File.read(path("tmp/server.pid")).to_i
    served.stop

    refute_path_exists path("tmp/server.pid")
    @served = nil
  end

  private

  # The connection came when nobody accepted any more: after the last look at the kernel's queue, with which the system
  # resets it, or after the end of that.
  def too_late?(failure) = failure.worker.nil? && failure.error.match?(/ECONNREFUSED|ECONNRESET|EPIPE/)
end
