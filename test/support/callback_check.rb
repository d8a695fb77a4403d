# frozen_string_literal: true

# A test fails in which another fiber runs during a callback of a library that is not declared re-entrant, in the test's
# own process. HEDDLE_TEST_CALLBACKS=off checks none.
module CallbackCheck
  # Tests in which it does, and why: "Class#test", or the class for all of its tests.
  EXEMPT = {
    "CallbackReportTest" => "makes callbacks wait, to see them reported",
    "MetricsTest#test_waits_in_callbacks_of_native_libraries_are_counted_by_library" =>
      "makes a callback wait, to see it counted",
    "EnableTest#test_several_are_switched_on_at_once_and_all_off" => "switches everything off",
    "WaitInPlaceTest#test_locks_and_queues_are_waited_for_by_a_switch" => "promises that it switches there",
    "WaitInPlaceTest#test_fibers_switch_outside_of_callbacks" => "promises that it switches with no library declared",
    "OffloadCallTest#test_callbacks_wait_beside_each_other" => "promises that callbacks of offloaded calls switch",
    "OffloadCancelTest#test_a_call_is_cancelled_in_its_callback" => "cancels it while it waits there"
  }.freeze

  # @return [Boolean] whether tests are checked
  def self.wanted?(setting = ENV.fetch("HEDDLE_TEST_CALLBACKS", nil))
    raise ArgumentError, "HEDDLE_TEST_CALLBACKS is #{setting.inspect}, not error or off" unless
      [nil, "error", "off"].include?(setting)

    setting != "off"
  end

  # Switched off first, which forgets the places of the test before: each place is reported once. Without the extension
  # there is no loop.
  def before_setup
    super
    return unless (@can_check_callbacks = defined?(Heddle::Native) && Heddle::Native.respond_to?(:report_callbacks))

    require "heddle/callback_report"
    Heddle.disable(:callback_report)
    Heddle.enable(:callback_report) unless exempt_from_callback_check?
  end

  def after_teardown
    super
    return if !@can_check_callbacks || exempt_from_callback_check?

    flunk "the test has switched the callback report off, which would have seen nothing" unless
      Heddle.enabled.include?(:callback_report)
    found = Heddle::CallbackReport.recent
    flunk "other fibers run during callbacks:\n#{found.join("\n")}" if found.any?
  end

  private

  def exempt_from_callback_check? = EXEMPT.key?(self.class.name) || EXEMPT.key?("#{self.class.name}##{name}")
end

Minitest::Test.prepend(CallbackCheck) if CallbackCheck.wanted?
