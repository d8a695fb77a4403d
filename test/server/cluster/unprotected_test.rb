# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "heddle/cli"
require "stringio"
require_relative "cluster_case"

# A share of the workers runs without protection, and status and metrics show which.
class ClusterUnprotectedTest < Minitest::Test
  include ClusterCase

  # Says what is on in the worker that answers.
  def setup
    super
    write("config.ru", 'run { [200, { "x-worker" => $$.to_s }, [Heddle.enabled.sort.join(",")]] }')
  end

  def status
    output = StringIO.new
    Heddle::CLI.run(["status", "--control", "unix:#{path("control.sock")}"], output:)
    output.string
  end

  # Worker => what is on there.
  def answers
    found = {}
    wait_until("there are not 2 workers") do
      answer = served.get("/")
      found[answer["x-worker"]] = answer.body
      found.size == 2
    end
    found
  end

  def protection_of(worker)
    client.status[:workers].find { |one| one[:index] == worker }[:protection].sort.join(",")
  end

  def test_one_of_two_workers_runs_unprotected_and_the_boot_line_says_so
    serve("--control", "unix:control.sock", "--canary-unprotected", "0.1")
    wait_for("Ctrl-C stops it")

    assert_match(/^Protection: .*offload.*; none in worker 0\. Ctrl-C/, served.output)
    assert_equal ["", protection_of(1)], answers.values.sort
    assert_equal "", protection_of(0)
    refute_empty protection_of(1)
    assert_includes status, "without protection (canary_unprotected): worker 0\n"
    labels = metrics["heddle_worker_protection_info"].keys

    assert_equal(%w[none], labels.select { |one| one["worker"] == "0" }.map { |one| one["protection"] })
    assert_equal([protection_of(1)], labels.select { |one| one["worker"] == "1" }.map { |one| one["protection"] })
  end

  def test_a_share_is_rounded_and_one_process_takes_no_notice
    count = lambda do |share, workers, environment = "production"|
      Heddle::Server::Configuration.new(canary_unprotected: share, workers:, environment:).unprotected_workers
    end

    assert_equal [0, 1, 1, 2, 4], [0, 0.01, 0.3, 0.5, 1].map { |share| count.call(share, 4) }
    assert_equal [0, 0], [count.call(1, 0), count.call(0.5, 1, "development")]
    error = assert_raises(Heddle::Server::ConfigurationError) do
      Heddle::Server::Configuration.load(flags: { canary_unprotected: "50" }, environment: {}, file: nil)
    end

    assert_match(/canary-unprotected must be from 0 to 1, but is 50/, error.message)
  end
end
