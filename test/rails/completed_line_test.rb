# frozen_string_literal: true

require "test_helper"
require "heddle/rails"
require "support/scheduled"

# The time account in Rails' line about a request.
class CompletedLineTest < Minitest::Test
  include Scheduled

  def test_largest_parts_are_in_the_message
    account = { queued: 0.0001, running: 0.0123, query: 0.0409, ready: 0.03, lock: 0.002, other: 1.0, total: 2.0 }

    assert_equal "Heddle, whole request: query 40.9ms, ready 30.0ms, running 12.3ms", Heddle::Rails::CompletedLine.message(account)
  end

  def test_nothing_is_said_without_an_account
    assert_nil Heddle::Rails::CompletedLine.message(nil)
    assert_nil Heddle::Rails::CompletedLine.message({ running: 0.0001 })
  end

  def test_line_of_a_controller_has_the_message
    out, status = ruby(<<~RUBY, flags: %w[--enable=gems])
      require "logger"
      require "action_controller"
      require "heddle/rails"
      Heddle::Rails::CompletedLine.install
      class HomeController < ActionController::Base; end
      p HomeController.log_process_action({ heddle_account: { sleep: 0.05 } }).last
    RUBY
    assert_predicate status, :success?, out
    assert_equal "\"Heddle, whole request: sleep 50.0ms\"", out.lines(chomp: true).last
  end
end
