# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require_relative "../../bin/support/holdings_page"

# The table of what one client can hold names all that a client can meet, and says nothing without a test or a reason.
class HoldingsTest < Minitest::Test
  TABLE = Heddle::HoldingsPage::TABLE
  STAGES = TABLE["stages"]
  # Enums of the states that a connection, a request or a session has.
  STATES = /^typedef enum \{([^}]*)\} heddle_\w*(?:state|stage|owner);/

  def test_the_page_is_up_to_date
    assert_equal Heddle::HoldingsPage.text, File.read(Heddle::HoldingsPage::PATH), "run bin/docs"
  end

  def test_each_stage_names_each_resource_once
    STAGES.each do |stage|
      named = %w[holds none].flat_map { |kind| stage[kind].flat_map(&:first) }

      assert_equal TABLE["resources"].sort, named.sort, stage["stage"]
    end
  end

  def test_each_cell_has_a_test_or_a_reason
    STAGES.each do |stage|
      stage["holds"].each do |_, *cells, tests|
        assert_equal 4, cells.grep(/\w/).size, stage["stage"]
        assert_operator tests.size, :>, 0, stage["stage"]
      end
      assert_empty stage["none"].map(&:last).grep_v(/\w/), stage["stage"]
    end
  end

  def test_kinds_of_listeners_are_named
    kinds = Heddle::Server::Bind.const_get(:PARAMETERS).keys

    assert_includes kinds, "tls"
    assert_empty kinds - names
  end

  def test_states_of_connections_requests_and_sessions_are_named
    states = Dir[File.join(ROOT, "ext/heddle/{net,http}/**/*.h")].flat_map do |path|
      File.read(path).scan(STATES).flatten.flat_map { |body| body.scan(/^    (HEDDLE_\w+)/).flatten }
    end - ["HEDDLE_H2_STATES"]

    assert_operator states.size, :>, 35
    assert_equal [[], []], [states - names, names.grep(/\AHEDDLE_/) - states]
  end

  def test_options_are_named
    text = STAGES.flat_map { |stage| stage["holds"] }.join(" ")
    others = TABLE["other_options"].values.flatten
    options = Heddle::Options::ALL.map { |option| option.name.to_s }

    assert_empty(options.reject { |name| text.include?("`#{name}`") || others.include?(name) })
    assert_empty others - options
  end

  def names = STAGES.flat_map { |stage| stage["names"] }
end
