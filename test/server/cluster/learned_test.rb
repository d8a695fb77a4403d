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
      NativeCalls.hold(0.3) if env["PATH_INFO"].start_with?("/reports")
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
      endpoints.include?(REPORTS)
    end
  end

  def test_an_operator_sees_what_was_learned_and_makes_it_forgotten
    serve
    learn

    assert_match(/^ +\d+\.\d+ s +\d+  \d+ s ago +#{REPORTS}$/, heddle("learned"))
    assert_includes heddle("status"), REPORTS
    assert_operator metrics["heddle_learned_stalls"][{ "endpoint" => REPORTS }], :>=, 1
    assert_equal "heddle: nothing is known of \"GET /x\": heddle learned lists what is\n",
                 heddle("learned", "--reset", "GET /x")
    assert_equal "1 endpoint forgotten\n", heddle("learned", "--reset", REPORTS)
    refute_includes endpoints, REPORTS
    learn

    assert_match(/\A\d+ endpoints? forgotten\n\z/, heddle("learned", "--reset"))
    refute_includes endpoints, REPORTS
    wait_for("is forgotten (heddle learned --reset)", 2)
  end

  def test_new_workers_and_a_new_master_know_it
    serve
    learn
    signal("HUP")
    wait_for("reloaded: 2 workers")

    assert_includes endpoints, REPORTS
    old = served.pid
    client.command("restart")
    wait_until { ![nil, old].include?(@master = master) }
    wait_until { !alive?(old) }

    assert_includes endpoints, REPORTS
  end

  def test_a_server_of_one_process_says_that_it_learns_nothing
    serve(workers: 0)

    assert_match(/\Aheddle: this server is one process/, heddle("learned"))
    assert_match(/\Aheddle: this server is one process/, heddle("learned", "--reset"))
  end
end
