# frozen_string_literal: true

# A test fails in which another fiber runs during a callback of a library that is not declared re-entrant.
# HEDDLE_TEST_CALLBACKS: `error` checks every file's tests, `off` none; without it those in FOLDERS are checked.
module CallbackCheck
  # Folders and files of test/ whose tests call native libraries that call back.
  FOLDERS = %w[offload preemption].freeze
  FILES = %w[scheduler/stalls_test.rb scheduler/wait_in_place_test.rb].freeze

  # Tests in which it does, and why: "Class#test", or the class for all of its tests.
  EXEMPT = {
    "CallbackReportTest" => "makes callbacks wait, to see them reported",
    "WaitInPlaceTest#test_locks_and_queues_are_waited_for_by_a_switch" => "promises that it switches there",
    "WaitInPlaceTest#test_elsewhere_fibers_switch" => "promises that it switches with no library declared",
    "OffloadCallTest#test_callbacks_wait_beside_each_other" => "promises that callbacks of offloaded calls switch",
    "OffloadCancelTest#test_a_call_is_cancelled_in_its_callback" => "cancels it while it waits there"
  }.freeze

  # @param file [String] the path of the test file that runs
  # @return [Boolean] whether its tests are checked
  def self.wanted?(file, setting = ENV.fetch("HEDDLE_TEST_CALLBACKS", nil))
    raise ArgumentError, "HEDDLE_TEST_CALLBACKS is #{setting.inspect}, not error or off" unless
      [nil, "error", "off"].include?(setting)
    return setting == "error" if setting

    path = File.expand_path(file).delete_prefix("#{File.expand_path("..", __dir__)}/")
    path.start_with?(*FOLDERS.map { |folder| "#{folder}/" }) || FILES.include?(path)
  end

  # Switched off first, which forgets the places of the test before: each place is reported once.
  def before_setup
    super
    require "heddle"
    Heddle.disable :callback_report
    Heddle.enable :callback_report unless exempt_from_callback_check?
  end

  def after_teardown
    super
    return if exempt_from_callback_check?

    # It would have seen nothing.
    assert_predicate Heddle::CallbackReport, :enabled?, "the test has switched the callback report off"
    assert_empty Heddle::CallbackReport.recent.map(&:to_s), "other fibers run during callbacks"
  end

  private

  def exempt_from_callback_check? = EXEMPT.key?(self.class.name) || EXEMPT.key?("#{self.class.name}##{name}")
end

Minitest::Test.prepend(CallbackCheck) if CallbackCheck.wanted?($PROGRAM_NAME)
