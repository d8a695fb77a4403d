# frozen_string_literal: true

require_relative "../offload/support/offloaded"
require_relative "server_helpers"

# What the server switches on while it runs, by the option `protect`.
class ProtectTest < Minitest::Test
  include Heddle::TestHelpers
  include ServerHelpers

  def setup
    require NativeCallsLibrary.path
    NativeCalls.reset
    @on_before = Heddle.enabled
  end

  # One after the other they would never meet.
  def test_requests_that_block_in_native_code_do_not_wait_for_each_other
    skip "a thread each" if ENV["HEDDLE_MODE"] == "thread"
    serving(->(_) { [200, {}, [NativeCalls.meet(5).to_s]] }, offload_allow: ["native_calls"]) do
      answers = Array.new(5) { Thread.new { get("/").body } }.map(&:value)

      assert_equal ["met"] * 5, answers
    end
  end

  def test_without_protection_native_code_runs_on_the_loops_thread
    serving(->(_) { [200, {}, [NativeCalls.same_thread?.to_s]] }, protect: []) do
      assert_equal "true", get("/").body unless @on_before.include?(:offload)
    end
  end

  def test_the_process_is_as_before_when_the_server_has_ended
    during = nil
    serving(->(_) { [200, {}, []] }) do
      get("/")
      during = Heddle.enabled
    end

    assert_includes during, :offload
    assert_equal @on_before, Heddle.enabled
  end

  def test_status_lists_no_handoff_where_there_is_no_second_worker
    skip "without the others" if %w[thread ractor].include?(ENV["HEDDLE_MODE"])
    serving(->(_) { [200, {}, []] }) do
      on = Heddle::Server::WorkerStatus.new(server, @log).to_h[:protection]

      assert_equal Heddle.enabled - [:handoff], on
      assert_includes Heddle.enabled, :handoff
    end
  end

  def test_a_library_that_must_not_be_offloaded_is_rejected
    configuration = Heddle::Server::Configuration.new(bind: ["127.0.0.1:0"], offload_allow: ["libc:sqlite3_native"])
    error = assert_raises(Heddle::Server::BootError) { Heddle::Server.new(configuration).run(->(_) { [200, {}, []] }) }

    assert_match(/\A--offload-allow: .*sqlite3_native/, error.message)
  end

  def test_an_unknown_word_is_refused
    error = assert_raises(Heddle::Server::ConfigurationError) do
      Heddle::Server::Configuration.load(flags: { protect: "magic" }, environment: {}, file: nil)
    end

    assert_match(/offload/, error.message)
  end
end
