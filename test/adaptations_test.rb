# frozen_string_literal: true

require "test_helper"
require "heddle/server"
require "open3"
require "rbconfig"
require "support/constants"

# The table of what is changed in other gems.
class AdaptationsTest < Minitest::Test
  Adaptations = Heddle::Adaptations

  # Stands for a gem of the table, with a version of our choice.
  def row(version, **values)
    spec = Gem::Specification.new("adapted", version)
    row = Adaptations::Row.new(gem: "adapted", constant: "AdaptationsTest", changes: "much", **values)
    Gem.loaded_specs["adapted"] = spec
    yield row
  ensure
    Gem.loaded_specs.delete("adapted")
  end

  def test_gem_of_a_tried_version_is_changed
    row("1.5", tried: [">= 1", "< 2"]) { |one| assert_equal :made, one.state }
  end

  # A bundle need not have the gem of one of Ruby's own libraries.
  def test_version_without_a_gem_is_the_librarys
    require "net/http"

    assert_equal Net::HTTP::VERSION, Adaptations::Row.new(gem: "none", constant: "Net::HTTP", changes: "").version.to_s
  end

  def test_gem_of_another_version_is_left_as_it_is
    row("2.0", tried: [">= 1", "< 2"]) do |one|
      assert_equal :untried, one.state
      assert_equal "adapted 2.0 is not adapted: Heddle was tested only with versions >= 1, < 2. " \
                   "The change would be: much", Adaptations.untried(one)
    end
  end

  def test_gem_that_is_left_out_is_not_changed
    row("1.5") { |one| assert_equal :excluded, one.state(except: [:adapted]) }
  end

  def test_gem_that_needs_nothing_has_no_state
    row("1.5", needed: ["< 1.5"]) { |one| assert_nil one.state }
  end

  def test_gem_that_only_fibers_need_changed_has_no_state_in_other_modes
    row("1.5", fibers: true) { |one| assert_nil one.state(fibers: false) }
  end

  def test_option_has_the_names_of_the_table
    assert_equal Adaptations::TABLE.map(&:name), Heddle::Options::ADAPTED
  end

  def test_option_leaves_out_what_a_file_excepts
    option = Heddle::Options::BY_NAME.fetch(:adapt)

    assert_equal Heddle::Options::ADAPTED - [:rack_timeout], option.parse([{ except: :rack_timeout }], "adapt")
    error = assert_raises(Heddle::Options::ConfigurationError) { option.parse([{ except: :rack_timeouts }], "adapt") }
    assert_includes error.message, "Did you mean rack_timeout?"
  end

  def test_except_adds_no_choice_that_is_not_in_the_default
    option = Heddle::Options::BY_NAME.fetch(:protect)

    assert_equal %i[offload preempt stall_report], option.parse([{ except: :handoff }], "protect")
  end

  # In mode ractor loops run beside the main Ractor.
  def test_loop_in_another_ractor_has_what_the_main_one_has_decided
    program = <<~RUBY
      $VERBOSE = nil
      require "async"
      require "sequel"
      require "heddle"
      Heddle.run { nil }
      ractor = Ractor.new { Heddle.run { %i[async sequel trilogy].map { |name| Heddle::Adaptations.adapt?(name) } } }
      p ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
    output, = Open3.capture2(RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", "-e", program)

    assert_equal "[true, true, false]\n", output
  end

  # Prints the gems' ancestors before and after Heddle was loaded.
  def test_loading_heddle_changes_no_gem
    program = <<~RUBY
      %w[concurrent sequel].each { |name| require name }
      begin
        require "rack-timeout"
      rescue LoadError
        nil # not in every bundle
      end
      types = [Concurrent.const_get(:ThreadLocals, false), Thread.singleton_class, Sequel::Database,
               *(Rack::Timeout::Scheduler::Timeout if defined?(Rack::Timeout))]
      before = types.map(&:ancestors)
      require "heddle"
      puts types.zip(before).flat_map { |type, ancestors| type.ancestors - ancestors }.inspect
    RUBY
    output, = Open3.capture2(RbConfig.ruby, "-I#{File.expand_path("../lib", __dir__)}", "-e", program)

    assert_equal "[]\n", output
  end
end
