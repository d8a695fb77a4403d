# frozen_string_literal: true

require "test_helper"
require "support/scheduled"

# The status of a request that got no database connection.
class RescueResponsesTest < Minitest::Test
  include Scheduled

  # Rails freezes the Hash since 8.2.
  def test_status_without_a_connection_is_503_also_where_rails_froze_its_responses
    ["", "wrapper.rescue_responses.freeze"].each do |before|
      assert_equal [":service_unavailable", ":internal_server_error"], responses(before)
    end
  end

  def test_status_that_the_application_has_chosen_is_kept
    chosen = responses('wrapper.rescue_responses["ActiveRecord::ConnectionTimeoutError"] = :not_found')

    assert_equal ":not_found", chosen.first
  end

  private

  def responses(before)
    out, status = ruby(<<~RUBY, flags: %w[--enable=gems])
      require "logger"
      require "action_dispatch"
      require "heddle/rails"
      wrapper = ActionDispatch::ExceptionWrapper
      #{before}
      Heddle::Rails.start
      p(*wrapper.rescue_responses.values_at("ActiveRecord::ConnectionTimeoutError", "Unknown"))
    RUBY
    assert_predicate status, :success?, out
    out.lines(chomp: true).last(2)
  end
end
