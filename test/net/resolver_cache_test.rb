# frozen_string_literal: true

require "net/support/resolver_case"

# Answers are kept exactly as long as DNS allows.
class ResolverCacheTest < Minitest::Test
  include Heddle::TestHelpers::ResolverCase

  def setup
    super
    @clock = Clock.new
    @server = name_server(negative_ttl: 20)
  end

  def test_an_answer_is_kept_for_its_ttl_and_no_longer
    @server.host("web.example", "192.0.2.1", ttl: 30)
    resolver = caching_resolver
    2.times { resolver.addresses("web.example") }

    assert_equal 1, asked("web.example")
    @clock.now += 29.9
    resolver.addresses("web.example")

    assert_equal 1, asked("web.example")
    @clock.now += 0.1
    resolver.addresses("web.example")

    assert_equal 2, asked("web.example")
  end

  def test_the_smallest_ttl_among_aliases_counts
    @server.alias("www.example", "edge.example", ttl: 5)
    @server.host("edge.example", "192.0.2.1", ttl: 3_600)

    assert_kept_for 5, "www.example"
  end

  def test_the_smallest_ttl_of_several_addresses_counts
    @server.host("web.example", "192.0.2.1", ttl: 3_600)
    @server.host("web.example", "192.0.2.2", ttl: 7)

    assert_kept_for 7, "web.example"
  end

  def test_the_smallest_ttl_of_both_families_counts
    @server.host("web.example", "192.0.2.1", ttl: 3_600)
    @server.host("web.example", "2001:db8::1", ttl: 9)

    assert_kept_for 9, "web.example", no_aaaa: false
  end

  def test_a_ttl_of_zero_is_not_kept
    @server.host("web.example", "192.0.2.1", ttl: 0)
    resolver = caching_resolver
    2.times { resolver.addresses("web.example") }

    assert_equal 2, asked("web.example")
  end

  def test_a_ttl_with_its_highest_bit_set_counts_as_zero
    @server.host("web.example", "192.0.2.1", ttl: 0x8000_0001)
    resolver = caching_resolver
    2.times { resolver.addresses("web.example") }

    assert_equal 2, asked("web.example")
  end

  def test_no_ttl_is_believed_for_longer_than_a_day
    @server.host("web.example", "192.0.2.1", ttl: 10_000_000)

    assert_kept_for 86_400, "web.example"
  end

  def test_an_absent_name_is_kept_for_the_minimum_of_its_zone
    assert_kept_for 20, "nobody.example"
  end

  def test_a_name_without_addresses_is_kept_for_the_minimum_of_its_zone
    @server.host("six.example", "2001:db8::1")

    assert_kept_for 20, "six.example"
  end

  def test_an_absent_name_without_soa_is_not_kept
    @server = name_server(negative_ttl: nil)
    resolver = caching_resolver

    2.times { assert_equal [], resolver.addresses("nobody.example") }

    assert_equal 2, asked("nobody.example")
  end

  def test_a_failure_is_not_kept
    @server.on("sick.example") { |query, *| @server.failure(query, 2) }
    resolver = caching_resolver

    2.times { assert_raises(Socket::ResolutionError) { resolver.addresses("sick.example") } }

    assert_equal 4, asked("sick.example"), "two tries for each lookup"
  end

  def test_the_cache_is_bounded_and_forgets_what_was_not_asked_for_longest
    %w[a b c].each { |name| @server.host("#{name}.example", "192.0.2.1") }
    resolver = caching_resolver(cache_size: 2)
    %w[a b a c a b].each { |name| resolver.addresses("#{name}.example") }

    assert_equal([1, 2, 1], %w[a b c].map { |name| asked("#{name}.example") })
  end

  def test_clear_forgets
    @server.host("web.example", "192.0.2.1")
    resolver = caching_resolver
    resolver.addresses("web.example")
    resolver.clear
    resolver.addresses("web.example")

    assert_equal 2, asked("web.example")
  end

  private

  def caching_resolver(**options)
    resolver_for(@server, clock: @clock, no_aaaa: true, **options)
  end

  def asked(name)
    @server.questions(name).size
  end

  def assert_kept_for(seconds, name, **options)
    resolver = caching_resolver(**options)
    resolver.addresses(name)
    once = asked(name)
    @clock.now += seconds - 0.5
    resolver.addresses(name)

    assert_equal once, asked(name), "asked again before #{seconds} s"
    @clock.now += 0.5
    resolver.addresses(name)

    assert_equal 2 * once, asked(name), "still kept after #{seconds} s"
  end
end
