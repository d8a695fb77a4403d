# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require_relative "../../bin/support/site"

# What bin/docs site makes of the pages. test/setup/site_build_test.rb builds it.
class SiteTest < Minitest::Test
  SITE = Heddle::Site.new("unused")

  def linked(text, page: "docs/rails.md") = SITE.linked(page, text)

  def test_links_to_pages_stay_links_from_the_root
    assert_equal "[a](/docs/stalls.md#b) [c](/README.md) [d](/examples/chat/README.md)",
                 linked("[a](stalls.md#b) [c](../README.md) [d](../examples/chat)")
  end

  def test_links_to_other_sites_and_headings_stay_as_they_are
    text = "[a](https://example.com/x) [b](#c) ![d](images/e.png)"

    assert_equal text, linked(text)
  end

  def test_links_to_files_of_the_repository_are_text_while_its_address_is_not_known
    assert_equal "see `lib/heddle.rb`", linked("see [`lib/heddle.rb`](../lib/heddle.rb)")
  end

  def test_code_stays_as_it_is
    text = "```ruby\nhash[name](../lib/heddle.rb)\n```\n"

    assert_equal text, linked(text)
  end

  def test_picture_with_two_versions_becomes_its_light_one
    assert_equal "![words](docs/a.png)",
                 linked(%(<picture>\n<source srcset="docs/b.png">\n<img src="docs/a.png" alt="words">\n</picture>))
  end

  def test_first_page_links_to_pages_that_exist
    links = File.read(File.join(ROOT, "docs/site/index.md")).scan(%r{link: /([\w/]+)}).flatten

    assert_operator links.size, :>, 5
    assert_empty(links.reject { |link| SITE.pages.include?("#{link}.md") })
  end

  def test_every_page_of_docs_is_in_the_site
    assert_empty Dir.glob("docs/*.md", base: ROOT) - SITE.pages
  end
end
