# frozen_string_literal: true

require "etc"

module Heddle
  # Finds the folder for temporary files, like Dir.tmpdir. But Dir.tmpdir raises or warns if there is none, and on Ruby
  # 3.3 may return a folder of a read-only file system.
  #
  # @api private
  module TemporaryFolder
    # @param environment [Hash{String => String}]
    # @return [String, nil] nil: no folder can be written to
    def self.find(environment = ENV)
      named = environment.values_at("TMPDIR", "TMP", "TEMP").reject { |folder| folder.to_s.empty? }
      folders = [*named, Etc.systmpdir, "/tmp", "."].lazy # the current folder may have been deleted
      folders.map { |folder| File.expand_path(folder) }.find { |folder| usable?(folder) }
    end

    # @param folder [String]
    # @return [Boolean]
    def self.usable?(folder)
      File.directory?(folder) && File.writable?(folder) && (File.sticky?(folder) || !File.world_writable?(folder))
    end
    private_class_method :usable?
  end
end
