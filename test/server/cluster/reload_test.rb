# frozen_string_literal: true

# test: long

require_relative "cluster_case"

# New code is loaded, and no client notices.
class ClusterReloadTest < Minitest::Test
  include ClusterCase

  # Notes which process loads it; waits while the file `shut` is there.
  GATED = <<~RUBY.freeze
    File.write("molds", "\#{$$}\\n", mode: "a")
    sleep 0.01 while File.exist?("shut")
    #{APP}
  RUBY

  def molds = File.readlines(path("molds")).map(&:to_i)

  def test_no_request_fails_in_reloads_under_load
    reloads = repetitions(5)
    serve
    load = self.load
    load.wait_for(50)
    reloads.times do |number|
      signal(number.even? ? "HUP" : "USR1")
      wait_for("reloaded: 2 workers serve the new code", number + 1)
      load.wait_for(20)
    end
    load.stop

    assert_empty load.failures
    assert_equal 0, load.closed, "connections that were closed without a word"
    assert_operator load.by_worker.size, :>=, 2 * reloads, "each reload replaces both workers"
  end

  # Answers lines on connections that it takes over, as WebSockets are.
  HIJACKER = <<~RUBY
    run do |env|
      next [200, {}, []] unless env["PATH_INFO"] == "/take"

      socket = env["rack.hijack"].call
      Thread.new do
        while (line = socket.gets)
          socket.write("\#{$$} \#{line}")
        end
      ensure
        socket.close
      end
      [200, {}, []]
    end
  RUBY

  def test_a_connection_that_the_application_took_over_continues_while_it_is_open
    write("config.ru", HIJACKER)
    serve("--stop-timeout", "600")
    socket = ask("/take")
    socket.puts("one")
    old = socket.gets
    signal("HUP")
    wait_for("reloaded: 2 workers serve the new code")
    socket.puts("one")

    assert_equal old, socket.gets, "the worker that it began with answers"
    socket.close
    wait_until("the old worker goes on") { !running?(old.to_i) }
  ensure
    socket&.close
  end

  def running?(pid)
    Process.kill(0, pid)
  rescue Errno::ESRCH
    false
  end

  def answer_of(socket)
    head = socket.gets("\r\n\r\n") or flunk "the connection is closed:\n#{served.output}"
    socket.read(head[/^content-length: (\d+)/i, 1].to_i)
    head
  end

  def test_a_connection_that_waits_meanwhile_stays_and_is_served_by_a_new_worker
    serve
    before = workers
    kept = ask("/")
    answer_of(kept)
    signal("HUP")
    wait_until { before.none? { |pid| alive?(pid) } }
    kept.write(format(GET, "/"))

    assert_includes workers, answer_of(kept)[/^x-worker: (\d+)/i, 1].to_i
  ensure
    kept&.close
  end

  def test_requests_that_run_are_answered_by_the_old_code
    serve
    held = ask("/hold")
    wait_until { File.exist?(path("held")) }
    write("config.ru", APP.sub("code 1", "code 2"))
    signal("HUP")
    wait_for("reloaded")

    assert_equal "code 2", served.get("/").body
    write("go", "")

    assert_match(/connection: close.*code 1\z/m, held.read)
  end

  def test_a_reload_ends_only_when_no_worker_of_the_old_code_accepts
    write("config.ru", APP.sub("Fiber.blocking { sleep 1 }", 'Fiber.blocking { sleep 0.01 until File.exist?("go") }'))
    serve("--control", "unix:control.sock", workers: 1)
    held = ask("/block")
    wait_until { File.exist?(path("held")) }
    signal("HUP")
    wait_until { client.status[:workers].map { _1[:state] }.sort == %w[ending running] }

    refute_includes served.output, "reloaded", "the loop that is held up has not stopped listening yet"
    write("go", "")
    wait_for("reloaded: 1 worker serves the new code")
  ensure
    held&.close
  end

  def test_a_reload_of_code_that_is_broken_changes_nothing_and_says_why_in_one_line
    serve
    before = workers
    write("config.ru", "run ->(env) {")
    signal("HUP")
    wait_for("reload failed")

    assert_match(/^[\d:]+ reload failed: config\.ru can't be loaded.*; keeping the current workers$/, served.output)
    assert_empty workers - before
    write("config.ru", APP.sub("code 1", "code 2"))
    signal("HUP")
    wait_for("reloaded: 2")

    assert_equal "code 2", served.get("/").body
  end

  def test_a_reload_of_a_wrong_configuration_changes_nothing
    write("config/heddle.rb", "stop_timeout 5\n")
    serve
    write("config/heddle.rb", "stop_timeot 5\n")
    signal("HUP")
    wait_for("reload failed")

    assert_match(%r{reload failed: config/heddle\.rb:1: .*stop_timeot}, served.output)
    assert_equal "200", served.get("/").code
  end

  def test_changes_that_need_a_restart_are_reported_at_a_reload
    write("config/heddle.rb", "stop_timeout 5\npubsub_history 64\n")
    serve
    write("config/heddle.rb", "stop_timeout 6\npubsub_history 65\n")
    signal("HUP")
    wait_for("reloaded: 2")

    assert_match(/a reload can't change pubsub_history: to apply the change, run heddle restart or send USR2$/,
                 served.output)
  end

  def test_the_log_line_of_a_syntax_error_says_what_is_missing
    serve
    write("config.ru", "require './page'\nrun Page\n")
    write("page.rb", "class Page\n  def call(env)\n    [200, {}, []]\n")
    signal("HUP")
    wait_for("keeping the current workers")

    assert_match(/reload failed: .*syntax error.*page\.rb:\d.* expect(ed an|ing) `end/, served.output)
  end

  def test_workers_that_cannot_boot_do_not_replace_the_old_ones
    write("config/heddle.rb", "worker_boot { }\n")
    serve
    before = workers
    write("config/heddle.rb", "worker_boot { raise 'no database' }\n")
    signal("HUP")
    wait_for("keeping the worker that it would have replaced")

    assert_match(%r{worker 0 failed: RuntimeError: no database\n    from .*config/heddle\.rb:1}, served.output)
    refute_match(%r{^    from .*lib/heddle/}, served.output)
    assert_empty workers - before
  end

  def test_a_reload_that_fails_keeps_the_number_of_workers
    write("config/heddle.rb", "workers 2\n")
    serve(workers: nil)
    before = workers
    write("config/heddle.rb", "workers 1\nworker_boot { raise 'no database' }\n")
    signal("HUP")
    wait_for("keeping the worker that it would have replaced")

    assert_equal 2, workers.size
    write("config/heddle.rb", "workers 3\n")
    signal("HUP")
    wait_for("reloaded: 3 workers serve the new code")

    assert_empty workers(3) & before
  end

  def test_a_reload_and_a_restart_change_the_environment
    write("config.ru", "run ->(_) { [200, {}, [ENV.values_at('RACK_ENV', 'RAILS_ENV').join(' ')]] }")
    environments = %w[staging preview beta].map { |name| -> { write("config/heddle.rb", "environment \"#{name}\"\n") } }
    environments[0].call
    serve(environment: %w[RACK_ENV RAILS_ENV APP_ENV].to_h { |name| [name, nil] })

    assert_equal "staging staging", served.get("/").body
    environments[1].call
    signal("HUP")
    wait_for("reloaded: 2")

    assert_equal "preview preview", served.get("/").body
    environments[2].call
    signal("USR2")
    wait_for("serves; the old master ends")

    wait_until { served.get("/").body == "beta beta" }
  ensure
    new_master = served&.output.to_s[/the new master \(pid (\d+)\)/, 1]
    signal("TERM", new_master.to_i) if new_master
  end

  def test_a_reload_changes_the_proxies_whose_headers_are_read
    write("config/heddle.rb", "trusted_proxies \"none\"\n")
    serve("-b", "unix:web.sock?proxy_protocol=on")
    asked = lambda do
      socket = UNIXSocket.new(path("web.sock"))
      socket.write("PROXY TCP4 192.0.2.9 198.51.100.1 4321 80\r\n#{format(GET, "/")}")
      socket.readpartial(10_000)[/\A\S+ (\d+)/, 1]
    ensure
      socket&.close
    end

    assert_equal "400", asked.call
    write("config/heddle.rb", "trusted_proxies \"unix\"\n")
    signal("HUP")
    wait_for("reloaded: 2")

    assert_equal "200", asked.call
  end

  # The former worker is stuck, so the reload is not over.
  def test_a_new_worker_that_dies_after_it_has_served_does_not_bring_the_old_code_back
    write("config.ru", APP.sub("sleep 1", "sleep 0.01 until File.exist?(%(go))"))
    serve("--control", "unix:control.sock", workers: 1)
    held = ask("/block")
    wait_until { File.exist?(path("held")) }
    write("config.ru", APP.sub("code 1", "code 2"))
    signal("HUP")
    first = worker_of("code 2", nil)
    # The master knows that the new one serves.
    wait_until { client.status[:workers].any? { |one| one[:state] == "ending" } }
    signal("KILL", first)
    wait_for(/worker 0 \(pid #{first}\) has ended: SIGKILL.*; starting another now/)

    refute_equal first, worker_of("code 2", first)
    write("go", "")
    wait_for("reloaded: 1 worker serves the new code")
    refute_includes served.output, "it was to replace"
  ensure
    held&.close
  end

  # @return [Integer] the worker that answers with this code, and is not the other one
  def worker_of(code, other)
    response = nil
    wait_until do
      response = served.get("/")
      response.body == code && response["x-worker"].to_i != other
    rescue SystemCallError, IOError
      false
    end
    response["x-worker"].to_i
  end

  def test_the_warning_of_trusted_networks_is_logged_once_and_not_at_each_reload
    serve("--bind", "0.0.0.0:0")
    signal("HUP")
    wait_for("reloaded")
    signal("HUP")
    wait_for("reloaded", 2)

    assert_equal 1, said("can forge their address and scheme with X-Forwarded-*")
  end

  def test_touching_restart_txt_reloads
    serve
    write("tmp/restart.txt", "")
    wait_for("reloaded")
  end

  def test_a_reload_beside_a_restarting_mold_leaves_one_working_mold
    write("config.ru", GATED)
    serve(workers: 1)
    killed = before = worker
    write("shut", "")
    signal("KILL", molds.last)
    wait_until { molds.size == 2 }
    signal("HUP")
    wait_until { molds.size == 3 }
    File.delete(path("shut"))
    wait_for("reloaded")
    wait_until { (killed = worker) != before } # the old one may not have heard yet that it is to leave
    signal("KILL", killed)
    wait_for("has ended: SIGKILL", 2) # the mold, and now the worker

    refute_equal killed, worker
    wait_until("there are more molds than one") { molds.one? { |pid| alive?(pid) } }
  end

  def test_a_reload_requested_by_the_loading_application_leaves_one_mold
    write("config.ru", <<~RUBY)
      File.write("molds", "\#{$$}\\n", mode: "a")
      Process.kill("HUP", Process.ppid) if File.readlines("molds").one?
      sleep 0.01 until File.readlines("molds").size > 1
      #{APP}
    RUBY
    serve
    wait_for("reloaded")

    assert_equal 2, workers.size
    wait_until("there are more molds than one") { molds.one? { |pid| alive?(pid) } }
  end

  def test_reloads_that_are_asked_for_meanwhile_come_after
    write("config.ru", GATED)
    serve
    write("shut", "")
    signal("HUP")
    wait_until("the new code is not loaded") { molds.size == 2 }
    signal("HUP")
    File.unlink(path("shut"))
    wait_for("reloaded", 2)
  end

  def test_ttin_and_ttou_are_a_worker_more_or_less
    serve(workers: 1)
    signal("TTIN")
    wait_for("2 workers until the next reload")
    workers(2)
    signal("TTOU")
    wait_for("1 worker until the next reload")
    signal("TTOU")
    remaining = nil
    wait_until { 5.times.map { remaining = worker }.uniq.size == 1 }

    assert_equal 1, said("1 worker until the next reload"), "at least one stays"
    assert alive?(remaining)
  end
end
