# frozen_string_literal: true

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"

# Another build of the checkout: all that processes of two versions tell each other has another version in it.
module OtherBuild
  ROOT = File.expand_path("../..", __dir__)
  # The lines that name a version, and that of the next one.
  VERSIONS = {
    "net/handoff.h" => /(?<=HEDDLE_HANDOFF_VERSION = )\d+/,
    "net/scoreboard.h" => /(?<=HEDDLE_SCOREBOARD_VERSION = )\d+/,
    "net/ticket_keys.c" => /(?<=MAGIC = UINT64_C\()0x\h+/,
    "http/push/handoff.c" => /(?<= VERSION = )\d+/,
    "pubsub/history_layout.h" => /(?<=HEDDLE_HISTORY_MAGIC UINT64_C\()0x\h+/
  }.freeze
  private_constant :ROOT, :VERSIONS

  # @return [String] its folder, which is removed when the tests have ended; compiled once
  def self.folder
    @folder ||= Dir.mktmpdir.tap do |folder|
      Minitest.after_run { FileUtils.remove_entry(folder) }
      %w[bin exe ext lib].each { |name| FileUtils.cp_r(File.join(ROOT, name), folder) }
      FileUtils.rm_rf(File.join(folder, "lib/heddle/native"))
      VERSIONS.each { |file, version| raise_version(File.join(folder, "ext/heddle", file), version) }
      output, status = Open3.capture2e(RbConfig.ruby, File.join(folder, "bin/compile"))
      raise output unless status.success?
    end
  end

  def self.raise_version(path, version)
    text = File.read(path)
    raise "#{path} names no version" unless text.match?(version)

    File.write(path, text.sub(version) { |found| format(found.start_with?("0x") ? "%#x" : "%d", Integer(found) + 1) })
  end
  private_class_method :raise_version
end
