# frozen_string_literal: true

# Step 10: testing it. Each test runs in a loop of its own, has a time limit, and fails when something that it started
# is still there at its end.
#
#     ruby docs/tutorial/10_testing.rb

require "minitest/autorun"
require "heddle/minitest"
require_relative "crawler"
require_relative "site"

# Each of these tests has a loop and a web site of its own.
class CrawlerTest < Minitest::Test
  include Heddle::Minitest

  def time_limit = 5

  def setup
    @site = Site.new(delay: 0.01)
    Heddle.async(background: true) { @site.serve }
  end

  def test_visits_every_page_once
    pages = Crawler.new.visit(@site.url)

    assert_equal Site::PAGES.keys.sort, pages.compact.keys.sort
    assert_equal 3, pages["/loom"]
  end

  def test_missing_pages_are_noted
    assert_nil Crawler.new.visit(@site.url).fetch("/missing")
  end

  def test_fetches_no_more_than_it_may_at_once
    Crawler.new(at_once: 2).visit(@site.url)

    assert_equal 2, @site.most
  end

  def test_slow_pages_are_given_up
    slow = Site.new(delay: 3)
    Heddle.async(background: true) { slow.serve }

    assert_equal({ "/" => nil }, Crawler.new(patience: 0.05).visit(slow.url))
  end
end
