# frozen_string_literal: true

# test: smoke

require "test_helper"
require "concurrent"
require "heddle/adaptations"
require "heddle/server"
require "net/http"
require "support/served_process"

# A variable of concurrent-ruby has a value for each request, and keeps nothing after it.
class ConcurrentRubyTest < Minitest::Test
  FILE = File.expand_path("concurrent_ruby.ru", __dir__)

  def served
    @served ||= ServedProcess.new([*ServedProcess::HEDDLE, "serve", FILE, "-p", "0", "-b", "127.0.0.1",
                                   "--no-access-log", "--workers", "0"], environment: { "RACK_ENV" => "production" })
  end

  def teardown = @served&.stop

  def test_concurrent_requests_see_their_own_values
    server = served # started by one thread
    answers = Array.new(20) { |i| Thread.new { server.get("/?tenant#{i}").body } }.map(&:value)

    assert_equal(Array.new(20) { |i| "none none tenant#{i} tenant#{i} tenant#{i} bound none" }, answers)
  end

  def test_nothing_is_kept_after_2000_requests
    before = served.get("/kept").body.to_i
    Net::HTTP.start(served.uri.host, served.uri.port) do |client|
      pool = Array.new(9) { Net::HTTP.start(served.uri.host, served.uri.port) }
      [client, *pool].map { |one| Thread.new { 200.times { |i| one.get("/?#{i}") } } }.each(&:join)
      pool.each(&:finish)
    end

    assert_operator served.get("/kept").body.to_i - before, :<=, 1
  end

  # The values of a variable that was collected are not those of the one that has its place now.
  def test_freed_place_is_empty_in_the_arrays_of_running_requests
    list = Class.new(Concurrent.const_get(:ThreadLocals, false)) do
      prepend Heddle::Adaptations::ConcurrentRuby::ThreadLocals
    end.new
    seen = Heddle.run do
      list.set(1, "old")
      list.free_index(1)
      list.fetch(1) { "none" } # rubocop:disable Style/RedundantFetchBlock
    end

    assert_equal "none", seen
  end
end
