# frozen_string_literal: true

require "test_helper"
require "heddle/cli"
require "net/http"
require "stringio"
require "tmpdir"
require_relative "served_example"
require "support/private_postgresql"
require_relative "support/board"

# Solid Queue in the first worker, as `heddle init --from` carries `plugin :solid_queue` over.
class RailsSolidQueueTest < Minitest::Test
  include Board

  PATIENCE = 30

  def setup
    need_board
    @folder = Dir.mktmpdir
    File.write(File.join(@folder, "puma.rb"), 'plugin :solid_queue if ENV["SOLID_QUEUE_IN_PUMA"]')
    @config = File.join(@folder, "heddle.rb")
    Heddle::CLI.run(["init", @config, "--from", File.join(@folder, "puma.rb")], output: StringIO.new)
  end

  def teardown
    @served&.stop
    FileUtils.remove_entry(@folder) if @folder
  end

  def test_jobs_run_in_the_server_and_end_with_it
    variables = environment("production").merge("HEDDLE_CONFIG" => @config, "SOLID_QUEUE_IN_PUMA" => "1")
    @served = ServedExample.new("rails_postgresql", bundled: true, environment: variables)
    text = "a job #{Process.clock_gettime(Process::CLOCK_MONOTONIC)}"

    assert_equal "202", Net::HTTP.post_form(@served.at("/shouts"), "text" => text).code
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until @served.get("/notes").body.include?(text.upcase)
      flunk "the job has not run:\n#{@served.output}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.05
    end
    status = @served.stop

    assert_predicate status, :success?, @served.output
    @served = nil
  end
end
