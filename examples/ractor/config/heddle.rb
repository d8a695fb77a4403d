# frozen_string_literal: true

mode :ractor
threads 2
