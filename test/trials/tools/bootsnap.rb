# frozen_string_literal: true

require "bootsnap"
require "yaml"

# Keeps what the load path has, and what files compile to, in a folder.
module TrialTool
  FOLDER = ENV.fetch("TRIAL_FOLDER")
  FILES = 200
  @next = 0

  Bootsnap.setup(cache_dir: File.join(FOLDER, "cache"), load_path_cache: true, compile_cache_iseq: true,
                 compile_cache_yaml: true)
  $LOAD_PATH.unshift(File.join(FOLDER, "lib"))

  module_function

  # Three requests at a time want the same file.
  def load_one
    number = (@next += 1) / 3 % FILES
    require "trial_file_#{number}"
    numbers = YAML.load_file(File.join(FOLDER, "lib", "trial_file_#{number}.yml"))
    [Object.const_get("TrialFile#{number}")::NUMBER] == numbers && numbers == [number] ? "loaded" : "wrong"
  end

  def cached = Dir.glob(File.join(FOLDER, "cache/**/*")).count { |path| File.file?(path) }.to_s
end
