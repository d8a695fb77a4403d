# frozen_string_literal: true

require "heddle/http"
require_relative "../../../support/native_library"

require NativeLibrary.new(File.expand_path("chunked_decoder.c", __dir__)).path
