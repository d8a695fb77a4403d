# frozen_string_literal: true

# test: smoke

require "test_helper"
require "support/scheduled"
require "heddle"

# Protections are switched on and off by name.
class EnableTest < Minitest::Test
  include Scheduled

  Protection = Heddle::Protection

  # Stands for a protection: remembers what it was told.
  class Switch
    attr_reader :options

    def enable(**options)
      @options = options
      @on = true
    end

    def disable = @on = false

    def enabled? = @on == true

    def status = { on: enabled? }
  end

  def setup
    @registered = Protection.instance_variable_get(:@registered)
    @one = Switch.new
    @other = Switch.new
    Protection.register(:one_switch, @one)
    Protection.register(:other_switch, @other)
  end

  def teardown
    Protection.instance_variable_set(:@registered, @registered)
  end

  def test_all_protections_can_be_enabled_without_rubygems
    output, = ruby("require 'heddle'; Heddle.enable(*Heddle::Protection::FILES.keys); puts 'enabled'")

    assert_equal "enabled\n", output
  end

  def test_a_protection_is_enabled_until_it_is_switched_off
    assert_equal [:one_switch], Heddle.enable(:one_switch) - @registered.keys
    assert_includes Heddle.enabled, :one_switch
    refute_includes Heddle.enabled, :other_switch

    refute_includes Heddle.disable(:one_switch), :one_switch
    refute_predicate @one, :enabled?
  end

  def test_several_are_switched_on_at_once_and_all_off
    Heddle.enable(:one_switch, "other_switch")

    assert_predicate @other, :enabled?
    assert_empty Heddle.disable & %i[one_switch other_switch]
  end

  def test_options_go_to_the_one_that_is_named
    Heddle.enable(:one_switch, slice: 0.01)

    assert_equal({ slice: 0.01 }, @one.options)
    error = assert_raises(ArgumentError) { Heddle.enable(:one_switch, :other_switch, slice: 1) }

    assert_match(/options only with a single name/, error.message)
  end

  def test_a_block_has_what_it_asks_for_until_the_last_one_ends
    Protection.during(%i[one_switch]) do
      Protection.during(%i[one_switch other_switch]) { assert_predicate @other, :enabled? }

      refute_predicate @other, :enabled?
      assert_predicate @one, :enabled?
    end

    refute_predicate @one, :enabled?
  end

  def test_a_protection_enabled_before_a_block_stays_on_after_it
    Heddle.enable(:one_switch)
    Protection.during(%i[one_switch other_switch]) { Heddle.enable(:other_switch) }

    assert_predicate @one, :enabled?
    assert_predicate @other, :enabled?
  end

  def test_a_block_that_fails_or_asks_for_nothing_known_leaves_nothing_on
    assert_raises(IndexError) { Protection.during(%i[one_switch]) { raise IndexError } }
    assert_raises(ArgumentError) { Protection.during(%i[one_switch nothing]) { nil } }

    refute_predicate @one, :enabled?
  end

  def test_the_summary_names_what_is_on_and_what_is_missing
    Heddle.enable(:one_switch)
    def @one.status = { reason: "not all of it" }

    assert_match(/one_switch \(not all of it\)/, Protection.summary)
  end

  def test_an_unknown_name_enables_nothing_and_the_error_lists_the_known_ones
    error = assert_raises(ArgumentError) { Heddle.enable(:one_switch, :nothing) }

    assert_match(/:nothing \(known: .*:one_switch/, error.message)
    refute_predicate @one, :enabled?
    assert_match(/needs at least one name/, assert_raises(ArgumentError) { Heddle.enable }.message)
  end
end
