# frozen_string_literal: true

require "etc"

module Heddle
  # Finds the folder for temporary files. Unlike Dir.tmpdir, it does not raise or warn if no folder is writable. It
  # never returns a folder on a read-only file system; Dir.tmpdir of Ruby 3.3 may return one.
  #
  # @api private
  module TemporaryFolder
    # @param environment [Hash{String => String}]
    # @return [String, nil] the folder; nil if no folder is usable. A usable folder is writable, and is sticky if all
    #   users may write to it
    def self.find(environment = ENV)
      named = environment.values_at("TMPDIR", "TMP", "TEMP").reject { |folder| folder.to_s.empty? }
      folders = [*named, Etc.systmpdir, "/tmp", "."].lazy # lazy: expanding "." raises if the folder was deleted
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
