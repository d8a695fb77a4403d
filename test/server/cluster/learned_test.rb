# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "heddle/cli"
require "stringio"
require_relative "../../offload/support/native_calls"
require_relative "cluster_case"

# Endpoints that hold Ruby's lock in native code are known to all workers, to an operator, and to the next master.
class ClusterLearnedTest < Minitest::Test
  include ClusterCase

  REPORTS = "GET /reports/:id"
  # On /reports holds Ruby's lock for a while.
  HOLDING = <<~RUBY.freeze
    require #{NativeCallsLibrary.path.inspect}
    run do |env|
      NativeCalls.hold(0.4) if env["PATH_INFO"].start_with?("/reports")
      [200, { "x-worker" => $$.to_s }, ["done"]]
    end
  RUBY

  def setup
    super
    write("config.ru", HOLDING)
  end

  def teardown
    signal("KILL", @master) if @master && alive?(@master)
    super
  end

  def serve(...) = super("--control", "unix:control.sock", ...)

  def endpoints = client.status[:learned].map { |one| one[:endpoint] }

  # What `heddle` prints.
  def heddle(*arguments)
    output = StringIO.new
    _, errors = capture_io do
      Heddle::CLI.run([*arguments, "--control", "unix:#{path("control.sock")}"], output:)
    end
    output.string + errors
  end

  # What came of the first request is noted when the worker has answered the others. On a machine that is short of cores
  # native code may once be taken for Ruby.
  def learn
    wait_until("nothing is learned") do
      Net::HTTP.start(served.uri.host, served.uri.port, read_timeout: PATIENCE) do |http|
        %w[/reports/7?year=2025 / /].each { |target| http.get(target) }
      end
      client.status[:learned].any? { |one| one[:endpoint] == REPORTS && one[:score] > 0.25 }
    end
  end

  def test_an_operator_sees_what_was_learned_and_makes_it_forgotten
    serve
    learn

    assert_match(/^ +\d+\.\d+ s +\d+  \d+ s ago +1  #{REPORTS}$/, heddle("learned"))
    assert_includes heddle("status"), REPORTS
    assert_operator metrics["heddle_learned_stalls"][{ "endpoint" => REPORTS }], :>=, 1
    assert_equal "heddle: nothing is known of \"GET /x\": heddle learned lists what is\n",
                 heddle("learned", "--reset", "GET /x")
    assert_equal "1 endpoint forgotten\n", heddle("learned", "--reset", REPORTS)
    wait_for("#{REPORTS} is forgotten (heddle learned --reset)")
    learn
    wait_until("not all is forgotten") do # a stall may be noted just now
      assert_match(/\A\d+ endpoints? forgotten\n\z/, heddle("learned", "--reset"))
      !endpoints.include?(REPORTS)
    end
  end

  # A connection that this worker has accepted, and which of them that is.
  def connection_of(pid)
    wait_until("#{pid} accepts nothing") do
      http = Net::HTTP.new(served.uri.host, served.uri.port)
      http.read_timeout = PATIENCE
      http.start
      return http if http.get("/")["x-worker"].to_i == pid

      http.finish
    end
  end

  # The number of the one that alone serves them.
  def worker_of_reports = client.status[:learned].find { |one| one[:endpoint] == REPORTS }&.fetch(:worker)

  def pids = client.status[:workers].sort_by { |one| one[:index] }.map { |one| one[:pid] }

  def test_what_was_learned_is_served_by_the_last_worker_and_nothing_else_is
    serve
    learn
    other, last = pids
    http = connection_of(other) # which has answered what was not learned

    assert_equal last, http.get("/reports/8")["x-worker"].to_i
    assert_equal "200", http.get("/").code # the connection goes on
    assert_operator metrics["heddle_quarantined_total"][{ "worker" => "0" }], :>=, 1
    assert_equal 1, metrics["heddle_learned_quarantined"][{ "endpoint" => REPORTS }]
    wait_until("what is forgotten is not served by any worker") do
      client.command("learned-reset")
      connection_of(other).get("/reports/9")["x-worker"].to_i == other
    end
    learn
    http = connection_of(other)
    signal("KILL", last)

    refute_includes [0, last], http.get("/reports/10")["x-worker"].to_i
  ensure
    http&.finish if http&.started?
  end

  def test_new_workers_and_a_new_master_know_it
    serve
    learn
    signal("HUP")
    wait_for("reloaded: 2 workers")

    assert_equal 1, worker_of_reports
    old = served.pid
    client.command("restart")
    wait_until { ![nil, old].include?(@master = master) }
    wait_until { !alive?(old) }

    assert_equal 1, worker_of_reports
    assert_equal pids.last, connection_of(pids.first).get("/reports/11")["x-worker"].to_i
  end
end
