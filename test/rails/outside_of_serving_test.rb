# frozen_string_literal: true

# test: once

require "test_helper"
require "examples/served_example"
require "json"
require "open3"

# In processes that don't serve, the gem changes nothing in a Rails application.
class OutsideOfServingTest < Minitest::Test
  PROGRAM = File.expand_path("outside_program.rb", __dir__)
  FOLDERS = %w[../../lib ..].map { |folder| File.expand_path(folder, __dir__) }

  def setup
    skip "needs the gems of examples/rails_postgresql: bin/setup" unless ServedExample.gems?("rails_postgresql")
  end

  # @return [Array(String, String)] what a program has printed, and its errors
  def run_program(*arguments)
    environment = ServedExample.bundle("rails_postgresql").merge("RAILS_ENV" => "production", "LD_BIND_NOW" => "1",
                                                                 "SECRET_KEY_BASE" => "0" * 64,
                                                                 "DATABASE_URL" => "postgresql://127.0.0.1:1/none")
    command = [RbConfig.ruby, *FOLDERS.map { |folder| "-I#{folder}" }]
    output, errors, status = Open3.capture3(environment, *command, *arguments)

    assert_predicate status, :success?, errors
    [output, errors]
  end

  def test_loading_the_gem_changes_nothing_in_a_runner_a_console_sidekiq_and_jobs
    states = run_program(PROGRAM).first.lines.to_h { |line| JSON.parse(line) }
    without = states.delete("without")

    assert_equal %w[runner console Sidekiq jobs], states.keys
    states.each { |kind, state| assert_equal without, state, kind }
  end

  def test_a_loop_whose_tasks_share_a_connection_warns_once
    _, errors = run_program("-e", <<~RUBY)
      require "active_record"
      require "heddle"
      ActiveRecord::Base.establish_connection
      ask = -> { 2.times { ActiveRecord::Base.connection_pool.active_connection? } }
      ask.call
      Heddle.run(&ask)
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      Heddle.run(&ask)
    RUBY

    assert_equal 1, errors.scan("heddle: Active Record's isolation level is :thread").size, errors
  end
end
