# frozen_string_literal: true

require "test_helper"
require "heddle/cli/demo"
require "heddle/stalls"
require "json"
require "rack/lint"
require "rack/mock_request"
require "tempfile"
require "timeout"

# What the panel whose request blocks is told, and what it leaves behind.
class DemoTrialTest < Minitest::Test
  Demo = Heddle::CLI::Demo
  Blockade = Demo::Blockade
  NAMES = Demo::Trial::SWITCHED

  def setup
    @before = Heddle.enabled
  end

  def teardown
    (Heddle.enabled - @before).each { |name| Heddle.disable(name) }
    (@before - Heddle.enabled).each { |name| Heddle.enable(name) }
  end

  def test_the_protections_are_off_for_the_trial_and_then_as_they_were
    Heddle.enable(*NAMES)
    during = nil
    trial(protect: false) { during = Heddle.enabled }

    assert_equal [:stall_report], during
    assert_equal NAMES, Heddle.enabled & NAMES
  end

  def test_the_protections_are_on_for_the_trial_and_then_as_they_were
    Heddle.disable
    during = nil
    trial(protect: true) { during = Heddle.enabled }

    assert_equal [*NAMES, :stall_report], during.sort
    assert_empty Heddle.enabled
  end

  def test_a_reader_that_goes_away_leaves_the_protections_as_they_were
    Heddle.enable(*NAMES)

    assert_raises(IOError) { trial(protect: false) { raise IOError, "gone" } }
    assert_equal NAMES, Heddle.enabled & NAMES
  end

  # The lock is let go when the others have run, so that a loop which stands still would wait forever.
  def test_others_run_while_a_lock_is_waited_for
    events = trial(protect: true) do |tell|
      Tempfile.create("heddle") { |file| File.open(file.path) { |other| beside(file, other, tell) } }
    end

    assert_equal(%w[other locked done], events.map { |event| event["event"] } - ["stall"])
  end

  def test_where_the_loop_stood_still_is_told_with_its_cause
    events = trial(protect: false) { Heddle.run { Heddle.async { Blockade.wait(0.2) }.wait } }
    stall = events.find { |event| event["event"] == "stall" && event["cause"].start_with?("a native call that rel") }

    assert stall, "no stall among #{events}"
    assert_operator stall["to"] - stall["from"], :>=, 0.1
  end

  def test_a_blockade_lasts_as_long_as_it_says
    %i[wait compute].each do |way|
      began = Blockade.now
      Blockade.public_send(way, 0.05)

      assert_operator Blockade.now - began, :>=, 0.05, way
    end
    assert_kind_of Integer, Blockade.hold(0.01)
  end

  def test_a_trial_is_asked_for_by_this_page_alone_and_in_words_that_are_known
    request = Rack::MockRequest.new(Rack::Lint.new(Demo.app))

    assert_equal 403, request.get("/trial?way=wait&protect=on", "HTTP_SEC_FETCH_SITE" => "cross-site").status
    assert_equal 403, request.get("/block?way=wait").status, "there is no trial"
    ["way=rest&protect=on", "way=wait&protect=maybe", "way=wait", ""].each do |query|
      assert_equal 400, request.get("/trial?#{query}").status, query
    end
    assert_includes request.get("/block?way=rest").body, "way has to be one of wait, compute, hold; it was \"rest\"."
  end

  private

  # @yield while the trial goes on
  # @return [Array<Hash>] the events of the trial
  def trial(protect:)
    began = Blockade.now
    events = Enumerator.new do |lines|
      yield ->(event) { lines << JSON.generate(event:) }
      lines << JSON.generate(event: "done", at: Blockade.now - began, began:)
    end
    told = []
    Heddle::Stalls.telling(->(_stall) {}) do
      Timeout.timeout(20) { Demo::Trial.new(events, protect:).each { |line| told << JSON.parse(line) } }
    end
    told
  end

  def beside(file, other, tell)
    file.flock(File::LOCK_EX)
    waiting = Thread::Queue.new
    Heddle.run do
      blocked = Heddle.async { [waiting << true, other.flock(File::LOCK_EX), tell.call("locked")] }
      Heddle.async { [waiting.pop, tell.call("other"), file.flock(File::LOCK_UN)] }
      blocked.wait
    end
  end
end
