# frozen_string_literal: true

# A file that one process at a time writes.
class Export
  def initialize(path)
    @path = path
  end

  def write(rows)
    File.open(@path, "a") do |file|
      file.flock(File::LOCK_EX) # culprit: file_lock
      file.write(rows.join("\n"))
    end
  end
end
