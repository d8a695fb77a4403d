# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle"

# Failures that end only one request, message or page.
class ApplicationFailureTest < Minitest::Test
  def caught?(error)
    raise error
  rescue Heddle::ApplicationFailure
    true
  rescue Exception # the others
    false
  end

  def test_failures_are_caught_whatever_their_class
    [RuntimeError, NotImplementedError, SystemStackError, NoMemoryError, Class.new(Exception)].each do |failure|
      assert_operator self, :caught?, failure
    end
  end

  def test_cancellations_and_exits_are_not_caught
    [Heddle::Cancelled, Class.new(Heddle::Cancelled), SystemExit, Interrupt, SignalException.new("TERM")].each do |e|
      refute_operator self, :caught?, e
    end
  end
end
