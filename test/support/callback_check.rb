# frozen_string_literal: true

require "heddle"

# HEDDLE_TEST_CALLBACKS=error: a test fails in which another fiber runs during a callback of a library that is not
# declared re-entrant.
module CallbackCheck
  # Tests in which it does, and why: "Class#test", or the class for all of its tests.
  EXEMPT = {
    "WaitInPlaceTest#test_locks_and_queues_are_waited_for_by_a_switch" => "promises that it switches there",
    "WaitInPlaceTest#test_elsewhere_fibers_switch" => "promises that it switches with no library declared",
    "OffloadCallTest#test_callbacks_wait_beside_each_other" => "promises that callbacks of offloaded calls switch",
    "OffloadCancelTest#test_a_call_is_cancelled_in_its_callback" => "cancels it while it waits there"
  }.freeze

  def after_teardown
    super
    found = Heddle::CallbackReport.recent - (@@seen ||= []) # rubocop:disable Style/ClassVars
    @@seen |= found # rubocop:disable Style/ClassVars
    return if EXEMPT.key?(self.class.name) || EXEMPT.key?("#{self.class.name}##{name}")

    assert_empty found.map(&:to_s), "other fibers run during callbacks"
  end
end

Minitest::Test.prepend(CallbackCheck)
Heddle.enable :callback_report
