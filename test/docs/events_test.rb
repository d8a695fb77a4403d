# frozen_string_literal: true

require "test_helper"
require_relative "../../bin/support/events_page"

class EventsPageTest < Minitest::Test
  def test_the_page_is_up_to_date
    assert_equal Heddle::EventsPage.text, File.read(Heddle::EventsPage::PATH), "run bin/docs"
  end
end
