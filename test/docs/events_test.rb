# frozen_string_literal: true

require "test_helper"
require_relative "../../bin/support/events_page"

class EventsPageTest < Minitest::Test
  def test_the_page_is_up_to_date
    assert_equal Heddle::EventsPage.text, File.read(Heddle::EventsPage::PATH), "run bin/docs"
  end

  def test_every_field_has_one_type
    names = Heddle::EventsPage::TYPES.values.flatten

    assert_empty(names.select { |name| names.count(name) > 1 })
    assert_empty names - Heddle::Events::TABLE.values.flat_map(&:fields)
  end

  def test_what_has_a_unit_is_a_number
    with_units = Heddle::Events::TABLE.values.flat_map { |event| event.template.scan(/\{(\w+):/).flatten }

    assert_empty with_units.uniq.map(&:to_sym) - Heddle::EventsPage::TYPES.fetch_values(:integer, :number).flatten
  end
end
