# frozen_string_literal: true

require "test_helper"
require "net/http"
require_relative "served_example"
require "support/private_postgresql"
require_relative "support/board"

# Solid Queue beside the server, as Rails' own deploy.yml asks for it.
class RailsSolidQueueTest < Minitest::Test
  include Board

  PATIENCE = 60

  def setup
    need_board
  end

  def teardown = @served&.stop

  def test_jobs_run_in_the_server_and_end_with_it
    variables = environment("production").merge("SOLID_QUEUE_IN_PUMA" => "true")
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
