# frozen_string_literal: true

require "test_helper"
require_relative "../../bin/support/options_page"

class PumaPageTest < Minitest::Test
  def test_the_guide_for_puma_users_is_up_to_date
    require_relative "../../bin/support/puma_page"

    assert_equal Heddle::PumaPage.text, File.read(Heddle::PumaPage::PATH), "run bin/docs"
  end
end

class OptionsPageTest < Minitest::Test
  def test_the_page_of_the_options_is_up_to_date
    assert_equal Heddle::OptionsPage.text, File.read(Heddle::OptionsPage::PATH), "run bin/docs"
  end

  def test_every_option_and_every_hook_is_on_the_page
    page = Heddle::OptionsPage.text

    Heddle::Options::ALL.each { |option| assert_includes page, "\n### #{option.name}\n" }
    Heddle::Server::Hooks::NAMES.each_key { |name| assert_includes page, "| `#{name} { … }` |" }
  end

  def test_every_number_but_workers_has_a_maximum
    numbers = Heddle::Options::ALL.reject { |one| one.name == :workers || %i[word list path switch url].include?(one.unit) }

    assert_operator numbers.size, :>, 20
    assert_empty numbers.select { |one| one.range.nil? || one.range.end.nil? }.map(&:name)
  end

  def test_every_option_has_a_reason_to_change_it
    reasons = Heddle::Options::ALL.to_h { |one| [one.name, one.reason] }

    assert_empty reasons.reject { |_, reason| reason.match?(/\A(?:Set|Raise|Lower|Leave)\b/) }
  end
end
