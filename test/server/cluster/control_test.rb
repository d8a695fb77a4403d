# frozen_string_literal: true

# test: long

require "test_helper"
require "heddle/server"
require "json"
require "open3"
require_relative "cluster_case"

# An operator sees all workers over the master's socket, and commands the master.
class ClusterControlTest < Minitest::Test
  include ClusterCase

  def serve(...) = super("--control", "unix:control.sock", "--control", "tcp://127.0.0.1:0", ...)

  def pids = client.status[:workers].map { |one| one[:pid] }

  def heddle(*arguments)
    Open3.capture2e(*ServedProcess::HEDDLE, *arguments, "--control", "unix:control.sock", chdir: @folder)
  end

  def test_every_worker_tells_of_itself_and_the_master_of_all
    serve
    answering = workers
    report = client.status

    assert_equal answering.sort, report[:workers].map { |one| one[:pid] }.sort
    assert_equal [0, 1], report[:workers].map { |one| one[:index] }
    memory = report[:master].slice(:memory, :memory_limit)
    ended = { answered: 0, failed: 0, rejected: 0, gone: 0 }
    assert_equal({ pid: served.pid, restarts: 0, wanted: 2, ended_workers: ended, pubsub_published: 0,
                   protection: { off: nil, tripped: false }, **memory, events: {} }, report[:master])
    assert_operator memory[:memory_limit], :>, memory[:memory] || 0, "nil: not measured yet"
    found = metrics

    assert_equal({ { "worker" => "0" } => 1.0, { "worker" => "1" } => 1.0 }, found["heddle_worker_up"])
    assert_operator found["heddle_requests_total"].select { |labels, _| labels["status"] == "2xx" }.values.sum, :>=, 2
    output, status = heddle("status")

    assert_predicate status, :success?, output
    answering.each { |pid| assert_match(/ #{pid} +running /, output) }
  end

  def test_totals_of_the_status_keep_the_requests_of_workers_that_have_ended
    serve(workers: 1)
    5.times { served.get("/") }
    TCPSocket.open(served.uri.host, served.uri.port) { |socket| socket.write("nonsense\r\n\r\n") && socket.read }
    signal("HUP")
    # On a busy machine a reserve worker may have served some of them, and ends later.
    wait_until { client.status[:master][:ended_workers].values_at(:answered, :rejected) == [5, 1] }

    assert_match(/answered 5   rejected 1   5xx 0   clients gone 0$/, heddle("status").first)
    served.get("/")
    signal("KILL", worker)
    wait_until { client.status[:master][:ended_workers][:answered] == 7 }
  end

  def test_requests_of_all_workers_are_seen
    serve
    holding = ask("/hold")
    wait_until { File.exist?(path("held")) }
    requests = client.status[:workers].flat_map { |one| one[:requests] }

    assert_equal ["/hold"], requests.map { |one| one[:target] }
    assert_match(/config\.ru/, requests.first[:at].first)
  ensure
    write("go", "")
    holding&.close
  end

  # Stopped as a debugger stops it, it can't say a word.
  def test_a_worker_that_is_stuck_is_shown_as_stuck
    serve
    stuck = workers.first
    signal("STOP", stuck)
    workers = client.status[:workers]
    one = workers.find { |worker| worker[:pid] == stuck }

    assert_equal "stuck", one[:state]
    assert_match(/its last message to the master was [\d.]+ s ago/, one[:problem])
    assert_equal %w[running], (workers - [one]).map { |worker| worker[:state] }
    assert_equal [0.0, 1.0], metrics["heddle_worker_up"].values.sort
    assert_match(/^! worker #{one[:index]}: does not respond/, heddle("status").first)
  ensure
    signal("CONT", stuck) if stuck
  end

  def test_tasks_of_every_worker_are_listed_also_where_they_fill_more_than_a_message
    write("config.ru", <<~RUBY)
      run do
        1000.times { |n| Heddle.async(name: "task \#{n} with a name #{"that is long " * 20}") { sleep } }
        File.write("held", "")
        sleep
      end
    RUBY
    serve
    holding = ask("/")
    wait_until { File.exist?(path("held")) }
    tasks = client.tasks

    assert_equal ["worker 0", "worker 1"], tasks.scan(/^worker \d/)
    assert_equal 1000, tasks.scan(/task \d+ with a name/).size
    assert_operator tasks.bytesize, :>, 131_072
  ensure
    holding&.close
    heddle("stop", "--now")
  end

  def test_reload_replaces_the_workers
    serve
    before = pids
    output, status = heddle("reload")

    assert_predicate status, :success?, output
    assert_equal "reloaded: new workers serve\n", output
    wait_for("reloaded: 2 workers")
    wait_until { !pids.intersect?(before) && pids.size == 2 }

    wait_for("(heddle reload)")
    assert_equal 2, metrics["heddle_worker_up"].size
  end

  def test_restart_starts_a_new_master_which_takes_the_socket_over
    serve
    before = master
    load = self.load
    output, status = heddle("restart")

    assert_predicate status, :success?, output
    assert_equal "restarted: a new master serves\n", output
    wait_until { ![nil, before].include?(master) }
    wait_until { !alive?(before) }

    assert_equal 2, client.status[:workers].count { |one| one[:state] == "running" }
    assert_empty load.stop.failures
  ensure
    heddle("stop")
  end

  def test_reload_and_restart_fail_with_the_reason_when_the_application_cannot_be_loaded
    serve
    before = workers
    write("config.ru", "raise 'a broken release'")
    { "reload" => "not reloaded", "restart" => "not restarted: the new master could not start" }.each do |command, text|
      output, status = heddle(command)

      assert_equal 1, status.exitstatus, output
      assert_match(/\Aheddle: #{text}: .*a broken release/m, output)
    end
    assert_equal before.sort, workers.sort
  end

  def test_reload_and_restart_fail_with_the_reason_when_the_configuration_or_a_hook_is_wrong
    write("config/heddle.rb", "worker_boot { }\n")
    serve
    write("config/heddle.rb", "wokers 2\n")
    %w[reload restart].each do |command|
      output, status = heddle(command)

      assert_equal [1, true], [status.exitstatus, output.include?("config/heddle.rb:1: ")], output
    end
    write("config/heddle.rb", "worker_boot { raise 'no database' }\n")
    { "reload" => "not reloaded: worker 0 .* could serve",
      "restart" => "not restarted: .* no worker can serve: worker \\d .* has ended" }.each do |command, text|
      output, status = heddle(command)

      assert_equal 1, status.exitstatus
      assert_match(%r{\Aheddle: #{text}: RuntimeError: no database \(\S*config/heddle\.rb:1:.*\)$}m, output)
    end
  end

  def test_reload_without_waiting_returns_before_the_result_is_known
    serve
    write("config.ru", "sleep 0.01 until File.exist?('go')\nraise 'broken'")
    output, status = heddle("reload", "--no-wait")

    assert_predicate status, :success?, output
    assert_match(/\Areplacing the workers one by one/, output)
    second = Thread.new { heddle("reload") }
    wait_for("(heddle reload)", 2)
    write("config.ru", APP)
    write("go", "")

    assert_equal "reloaded: new workers serve\n", second.value.first
  end

  def test_reload_fails_when_the_server_stops_meanwhile
    serve
    write("config.ru", "sleep")
    waiting = Thread.new { heddle("reload") }
    wait_for("(heddle reload)")
    heddle("stop")
    output, status = waiting.value

    assert_equal [1, "heddle: not reloaded: the server is stopping\n"], [status.exitstatus, output]
  end

  def test_stop_ends_all_of_it
    serve
    output, status = heddle("stop")

    assert_predicate status, :success?, output
    assert_equal "stopping as soon as the running requests are answered\nstopped\n", output
    wait_until { !alive?(served.pid) }
    refute_path_exists path("control.sock")
  end

  def test_a_worker_that_was_lost_is_counted
    serve
    signal("KILL", workers.first)
    wait_for("starting another")

    assert_equal 1, client.status[:master][:restarts]
  end
end
