# frozen_string_literal: true

# test: smoke

require "test_helper"
require "stringio"
require "heddle/server"

# Which signals stop a server with a single process, and when its deadline starts.
class SingleProcessSignalsTest < Minitest::Test
  Settings = Data.define(:drain_delay, :stop_timeout, :drain_time)

  class Recorder
    attr_reader :calls

    def initialize = @calls = []

    def configuration = Settings.new(drain_delay: 0, stop_timeout: 25, drain_time: nil)

    def event(name, **) = @calls << name

    def stop(now:) = @calls << (now ? :stop_now : :stop)

    def within(seconds) = @calls << seconds
  end

  # @return [Array] what the signals have caused
  def handle(*names)
    recorder = Recorder.new
    signals = Heddle::Server::SingleProcess::Signals.new(recorder, recorder, recorder)
    signals.__send__(:handle_signals, StringIO.new(names.join("\n")))
    recorder.calls
  end

  def test_second_int_stops_at_once_and_later_signals_do_not_start_the_deadline_again
    calls = [:stop_requested, :stop, 25, :stop_now_requested, :stop_now, 0]

    assert_equal calls, handle("INT", "INT", "INT", "TERM", "INT")
  end

  def test_second_term_changes_nothing
    assert_equal [:stop_requested, :stop, 25], handle("TERM", "TERM", "QUIT")
  end
end
