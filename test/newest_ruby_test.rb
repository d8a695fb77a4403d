# frozen_string_literal: true

require "test_helper"
require "heddle/newest_ruby"

class NewestRubyTest < Minitest::Test
  def test_notice_names_both_versions_of_a_newer_ruby
    assert_equal "Ruby 99.2 is newer than #{Heddle::NewestRuby::TRIED}, the newest one that was tried",
                 Heddle::NewestRuby.notice("99.2.1")
  end

  def test_notice_is_nil_for_tried_and_older_rubies
    ["#{Heddle::NewestRuby::TRIED}.9", "3.3.8", "3.10.0"].each { |version| assert_nil Heddle::NewestRuby.notice(version) }
  end

  def test_notice_is_nil_for_this_ruby
    assert_nil Heddle::NewestRuby.notice
  end
end
