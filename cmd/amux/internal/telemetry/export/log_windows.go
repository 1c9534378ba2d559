package export

const noFollow = 0
