# frozen_string_literal: true

require_relative "support/dns_case"

# How many bytes of answers are kept, and for how long, on a clock that the test sets.
class DNSCacheTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  def setup
    @now = 1_000.0
  end

  def cache(size = 100_000, **) = DNS::Cache.new(size, -> { @now }, **)

  def answer(ttl: 60, text: "x", rcode: :NOERROR)
    DNS::Message.query("a.test", :TXT).tap do |message|
      message.rcode = rcode
      message.answers << DNS::Record.of("a.test", :TXT, ttl, text) if ttl
    end
  end

  def test_bytes_are_bounded_and_the_answer_not_asked_for_the_longest_goes_first
    cache = cache(36_000)
    (1..3).each { |number| cache.store(number, answer(text: "x" * 1_000)) }
    cache.fetch(1)
    cache.store(4, answer(text: "x" * 1_500))

    assert_operator cache.taken, :<=, 36_000
    assert_equal [true, false, true, true], (1..4).map { |number| !cache.fetch(number).nil? }
  end

  def test_an_answer_larger_than_the_cache_is_not_kept_and_takes_nothing_away
    cache = cache(20_000)
    cache.store(1, answer)
    cache.store(2, answer(text: "x" * 10_000))

    assert_equal [1, nil], [cache.count, cache.fetch(2)]
    refute_nil cache.fetch(1)
  end

  def test_an_answer_stored_twice_counts_once
    cache = cache()
    2.times { cache.store(1, answer) }
    bytes = cache.taken
    cache.store(1, answer)

    assert_equal [1, bytes], [cache.count, cache.taken]
    @now += 60

    assert_nil cache.fetch(1)
    assert_equal [0, 0], [cache.count, cache.taken]
  end

  def test_a_ttl_shrinks_and_has_bounds
    cache = cache(min_ttl: 10, max_ttl: 100)
    { 1 => 1, 2 => 60, 3 => 1_000 }.each { |key, ttl| cache.store(key, answer(ttl:)) }
    @now += 9.5

    assert_equal [0, 51, 991], [1, 2, 3].map { |key| cache.fetch(key).answers.first.ttl }
    @now += 0.5

    assert_equal [nil, 50], [cache.fetch(1), cache.fetch(2).answers.first.ttl]
    @now += 90

    assert_nil cache.fetch(3)
  end

  def test_an_absence_without_soa_is_not_kept
    cache = cache()
    cache.store(1, answer(ttl: nil, rcode: :NXDOMAIN))

    assert_equal 0, cache.count
  end
end
